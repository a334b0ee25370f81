"""W9: what the weights hold, read with --values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.fold import fold
from eyas.checks.rules.rule import TrainedRule
from eyas.checks.values_decode import UNSCALED
from eyas.checks.view import Trained
from eyas.spec import Eagle3Spec

if TYPE_CHECKING:
    from eyas.checks.values import DraftValues, TensorValues

NO_VALUES = "no --values"  # why a check that needs the weights did not run
AGAIN = "export the drafter again from the training run"
LISTED = 3  # tensors whose numbers a finding gives


class ValueRule(TrainedRule):
    """A rule about the numbers in the tensors; one finding names every tensor that it is true of.

    `saying` is the message, with {names} and {hold} in it.
    """

    saying: ClassVar[str]
    expected: ClassVar[str]

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        if trained.values is None:
            yield self.skip(NO_VALUES)
            return
        if not isinstance(trained.spec, Eagle3Spec):
            return
        yield from self._skips(trained.values)
        said = {
            name: text
            for name, values in trained.values.tensors.items()
            if (text := self._of(values, trained.roles[name], trained)) is not None
        }
        if said:
            names = fold(said, among=trained.checkpoint.tensors)
            place = trained.checkpoint.place(next(iter(said))).partition(" :: ")[0]
            many = len(said) > 1
            yield self.finding(
                place=f"{place} :: {', '.join(names)}",
                message=self.saying.format(
                    names=f"{len(said)} tensors" if many else next(iter(said)),
                    hold="hold" if many else "holds",
                ),
                expected=self.expected,
                found=_listed(said),
                advice=AGAIN,
            )

    def _skips(self, values: DraftValues) -> Iterator[Skip]:
        for dtype in dict.fromkeys(values.unread.values()):
            names = [name for name, other in values.unread.items() if other == dtype]
            yield self.skip(f"{dtype} is not decoded: {', '.join(fold(names, among=names))}")

    @abstractmethod
    def _of(self, values: TensorValues, role: str, trained: Trained) -> str | None:
        """What is found in the tensor of `role`, or None where nothing is wrong with it."""


def _listed(said: Mapping[str, str]) -> str:
    """What was found, tensor by tensor, of the first few."""
    first = [f"{name}: {text}" for name, text in list(said.items())[:LISTED]]
    rest = len(said) - len(first)
    return "; ".join(first) + (f"; and {rest} more" if rest else "")


class AllZero(ValueRule):
    """A matrix or a norm of zeros.

    What it checks
        Whether a weight holds nothing but zeros. Biases may: zero is where they begin.

    Why it matters
        Whatever goes through it is lost: a zero fc or norm makes every draft the same, a zero
        embedding hides the tokens. It loads without a word, since name and shape are right.

    How to fix it
        Export the drafter again: zeros stand where an exporter, a sharded save or a sparse copy
        had no weights to write.

    Example
        A checkpoint that was saved by one rank of a sharded run, whose other ranks held the rest.
    """

    code = "W901"
    name = "all-zero"
    saying = "{names} {hold} nothing but zeros"
    expected = "trained weights"
    effect = "what passes through them is lost; acceptance collapses to 1.00"

    def _of(self, values: TensorValues, role: str, trained: Trained) -> str | None:
        if values.zeros < values.elements or role.endswith(".bias"):
            return None
        return f"{values.elements} zeros"


class NotFinite(ValueRule):
    """A weight that is no number.

    What it checks
        Whether a tensor has NaN or an infinity among its numbers.

    Why it matters
        One is enough: it spreads to every logit, and the drafter proposes the same token or none.

    How to fix it
        Take an earlier checkpoint of the training run: it has diverged, or overflowed in float16.

    Example
        A head trained in bfloat16 and saved as float16, whose largest numbers became infinite.
    """

    code = "W902"
    name = "not-finite"
    saying = "{names} {hold} numbers that are NaN or infinite"
    expected = "finite numbers"
    effect = "every logit of the drafter is NaN; nothing is accepted"

    def _of(self, values: TensorValues, role: str, trained: Trained) -> str | None:
        return f"{values.not_finite} of {values.elements}" if values.not_finite else None


class RowsRepeated(ValueRule):
    """A matrix of which most rows are copies.

    What it checks
        Whether more than half of the rows of a matrix equal an earlier row of it, bit by bit.
        Half is left alone: it is what key and value heads look like that were doubled for a
        tensor-parallel run; so are the few equal rows of padded vocabularies. Of more than 262,144
        rows the first ones are compared.

    Why it matters
        Trained rows differ. Copies are what a constant fill, a broadcast or a wrong stride leaves:
        equal rows of a head give their tokens the same logit.

    How to fix it
        Export the drafter again, and look at how the matrix was resized or gathered.

    Example
        An embedding that was enlarged for a longer vocabulary by repeating its mean.
    """

    code = "W903"
    name = "rows-repeated"
    severity: ClassVar[Severity] = Severity.WARNING
    saying = "{names} {hold} mostly rows that repeat an earlier one"
    expected = "rows that differ"
    effect = "what the rows should tell apart is the same; acceptance falls"

    def _of(self, values: TensorValues, role: str, trained: Trained) -> str | None:
        if 2 * values.repeated_rows <= values.rows or values.zeros == values.elements:
            return None
        return f"{values.repeated_rows} of {values.rows} rows"


class AtInitialisation(ValueRule):
    """A matrix that looks like a fresh one.

    What it checks
        Whether mean, standard deviation and kurtosis of a matrix of 65,536 numbers or more are, to
        four standard errors, those of an initialisation: normal with the config's
        initializer_range (0.02 where it has none), normal with 1 (PyTorch's embedding), or uniform
        within 1/sqrt(inputs) (PyTorch's linear layer). Matrices of eight-bit floats are not
        looked at: their scale is elsewhere.

    Why it matters
        A converter that creates what it misses and an exporter that saves what it never trained
        write such matrices. They load without a word and draft noise.

    How to fix it
        Export the drafter again. A matrix that training has moved by more than a per cent of its
        spread is not found here.

    Example
        TorchSpec once exported random embeddings (its issue 38): acceptance was poor on vLLM,
        which keeps them, and fine on SGLang, which puts the target's in their place.
    """

    code = "W904"
    name = "at-initialisation"
    severity: ClassVar[Severity] = Severity.WARNING
    saying = "{names} {hold} what a fresh matrix does"
    expected = "weights that training has moved"
    effect = "if they were never trained, they draft noise; acceptance falls to 1.00"

    def _of(self, values: TensorValues, role: str, trained: Trained) -> str | None:
        if values.dtype not in UNSCALED:
            return None
        from eyas.checks.values_distribution import construction

        return construction(values, _stated_std(trained.checkpoint.config))


def _stated_std(config: Mapping[str, Any]) -> float | None:
    """The initializer_range of a config, flat or nested as speculators writes it."""
    nested = config.get("transformer_layer_config")
    for table in (config, nested if isinstance(nested, Mapping) else {}):
        stated = table.get("initializer_range")
        if isinstance(stated, float) and stated > 0:
            return stated
    return None


class EmbeddingUnlikeTarget(TrainedRule):
    """An embedding of other tokens than the target's.

    What it checks
        The drafter's own embedding against the target's, row by row, where --target has weights at
        hand: the median cosine of the two rows of a token. Below a half they have nothing in
        common; a copy gives 1, and a copy that was trained stays near it.

    Why it matters
        Producers save a frozen copy of the target's embedding. vLLM keeps the drafter's own one
        where it differs (0.32.0, vllm/v1/spec_decode/llm_base_proposer.py:1443-1466 and
        vllm/v1/worker/gpu/spec_decode/eagle/utils.py:15-31), and then reads other tokens than
        were said.

    How to fix it
        Write the target's embedding, or name the target that the drafter was trained for.

    Example
        A drafter for another tokenizer of the same size, or one with a random embedding.
    """

    code = "W905"
    name = "embedding-unlike-target"
    severity: ClassVar[Severity] = Severity.WARNING
    effect = "an engine that keeps this embedding reads other tokens; poor acceptance was reported"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        if trained.values is None:
            yield self.skip(NO_VALUES)
            return
        from eyas.checks.values_embedding import Unlikened

        likeness = trained.values.embedding
        if isinstance(likeness, Unlikened):
            if likeness.reason is not None:
                yield self.skip(likeness.reason)
            return
        if likeness.median < 0.5:
            yield self.finding(
                place=trained.checkpoint.place(likeness.tensor),
                message="the drafter's own embedding has nothing in common with the target's",
                expected="a copy of the target's embedding, or one trained from it",
                found=f"a median cosine of {likeness.median:.2f} over {likeness.rows} tokens,"
                f" {likeness.equal} of them equal",
                advice="write the target's embedding, or name the target it was trained for",
            )


RULES = (AllZero(), NotFinite(), RowsRepeated(), AtInitialisation(), EmbeddingUnlikeTarget())
