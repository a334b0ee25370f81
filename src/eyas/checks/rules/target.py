"""T7: whether the drafter and the target fit each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eyas.checks.finding import Finding, Skip
from eyas.checks.rules.fact import with_source
from eyas.checks.rules.rule import NO_TARGET, TrainedRule
from eyas.checks.view import Trained
from eyas.errors import TargetError
from eyas.spec import Eagle3Spec, Fused, boundaries_of

if TYPE_CHECKING:
    from eyas.checkpoint import TargetFacts


def unstated(target: TargetFacts, key: str) -> str:
    """The reason that a check cannot run because the target's config has no `key`."""
    return f"the config of {target.location} states no {key}"


class WidthMismatch(TrainedRule):
    """The target's states have another width than fc was trained for.

    What it checks
        target_hidden_size of the drafter against hidden_size of the target.

    Why it matters
        fc cannot be applied: engines raise, or, where the width happens to equal the drafter's,
        skip it in silence.

    How to fix it
        Name the target that the drafter was trained for.

    Example
        A drafter of Llama-3.1-8B (4096) under Llama-3.3-70B (8192).
    """

    code = "T701"
    name = "width-mismatch"
    effect = "fc cannot be applied to the target's states"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec, target = trained.spec, trained.target
        if not isinstance(spec, Eagle3Spec):
            return
        if target is None or target.hidden_size is None:
            yield self.skip(NO_TARGET if target is None else unstated(target, "hidden_size"))
        elif spec.target_hidden_size.value != target.hidden_size:
            width = spec.target_hidden_size
            yield self.finding(
                place=width.key,
                message=f"the drafter takes states of width {width.value},"
                f" the target's are {target.hidden_size} wide",
                expected=f"a target of width {width.value} ({width.key})",
                found=f"hidden_size {target.hidden_size} ({target.location})",
                advice=f"eyas inspect {trained.draft}",
            )


class VocabularyMismatch(TrainedRule):
    """The target has another vocabulary than the drafter was trained for.

    What it checks
        vocab_size of the drafter against vocab_size of the target.

    Why it matters
        Draft ids are the target's ids or are mapped to them: in another vocabulary they name other
        tokens, and nothing is accepted.

    How to fix it
        Name the target that the drafter was trained for.

    Example
        A drafter of Qwen3 (151,936 tokens) under Llama 3 (128,256).
    """

    code = "T702"
    name = "vocabulary-mismatch"
    effect = "draft ids name other tokens of the target; nothing is accepted"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec, target = trained.spec, trained.target
        if not isinstance(spec, Eagle3Spec):
            return
        if target is None or target.vocab_size is None:
            yield self.skip(NO_TARGET if target is None else unstated(target, "vocab_size"))
        elif spec.vocab_size.value != target.vocab_size:
            size = spec.vocab_size
            yield self.finding(
                place=size.key,
                message=f"the drafter is for a vocabulary of {size.value} tokens,"
                f" the target has {target.vocab_size}",
                expected=f"a target with {size.value} tokens ({size.key})",
                found=f"vocab_size {target.vocab_size} ({target.location})",
                advice=f"eyas inspect {trained.draft}",
            )


class BoundaryOutside(TrainedRule):
    """A captured boundary that the target does not have.

    What it checks
        Whether every boundary that the drafter was trained on lies in the target: 0 (embeddings)
        to L (after the last of L layers); and whether the default boundaries exist at all.

    Why it matters
        The engine captures one state too few: an error at the first request, or in the worst case
        a fusion that is skipped.

    How to fix it
        Name the target that the drafter was trained for, or correct the layer ids.

    Example
        Boundary 59 for a target of 32 layers.
    """

    code = "T703"
    name = "boundary-outside"
    effect = "a state that fc needs does not exist"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec, target = trained.spec, trained.target
        if not isinstance(spec, Eagle3Spec) or not isinstance(spec.conditioning, Fused):
            return
        if target is None or target.num_layers is None:
            yield self.skip(NO_TARGET if target is None else unstated(target, "num_hidden_layers"))
            return
        boundaries = spec.conditioning.boundaries
        try:
            boundaries_of(boundaries.value, target.num_layers)
        except TargetError as error:
            yield self.finding(
                place=boundaries.key,
                message=error.message,
                expected=f"boundaries within 0 to {target.num_layers}",
                found=with_source(boundaries),
                advice=f"eyas inspect {trained.draft}",
            )


RULES = (WidthMismatch(), VocabularyMismatch(), BoundaryOutside())
