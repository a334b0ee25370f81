"""V4: the embedding, the head, and how draft ids become the target's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.rules.fact import FactRule
from eyas.checks.rules.rule import TrainedRule
from eyas.checks.view import Trained
from eyas.errors import CheckpointError
from eyas.spec import Eagle3Spec, Fact, Ownership, VocabMap


class HeadReplaced(FactRule):
    """Another head than the drafter's own.

    What it checks
        Whose matrix turns the drafter's state into logits: its own, the target's, or its embedding.

    Why it matters
        The drafter's head has one row for each draft id; another one has other rows. The target's
        head in place of the drafter's gave 1.32 instead of 2.49.

    How to fix it
        Launch with the EAGLE-3 algorithm; set tie_word_embeddings false.

    Example
        sglang with --speculative-algorithm EAGLE puts the target's head in place.
    """

    code = "V401"
    name = "head-replaced"
    facts = ("head",)
    words = ("head",)
    saying = "{engine} computes logits with {served} head; trained with {trained}"
    effect = "logits come from another matrix (1.32 instead of 2.49 seen, 1.00 where unfilled)"


class MapLost(FactRule):
    """Draft ids used without the map, or with another one.

    What it checks
        Whether the engine maps draft ids to target ids by d2t, as offsets, as trained.

    Why it matters
        Without the map, draft id i is taken for target id i: d2t lost gave 1.12 instead of 2.99.

    How to fix it
        Launch with the EAGLE-3 algorithm; name the tensor d2t; set draft_vocab_size.

    Example
        sglang with --speculative-algorithm EAGLE never picks d2t up.
    """

    code = "V402"
    name = "map-lost"
    facts = ("vocab_map",)
    words = ("d2t",)
    saying = "{engine} has {served}; the drafter was trained with {trained}"
    effect = "draft ids name other tokens (1.12 instead of 2.99 seen)"


class MapMissing(TrainedRule):
    """A reduced draft vocabulary without a map.

    What it checks
        Whether a drafter whose vocabulary is smaller than the target's has a d2t tensor.

    Why it matters
        Every engine then takes draft id i for target id i, without a word.

    How to fix it
        Take d2t from the training run. It cannot be rebuilt from the weights alone.

    Example
        A trainer that keeps the map in a side file.
    """

    code = "V403"
    name = "map-missing"
    effect = "draft ids name other tokens (1.12 instead of 2.99 seen)"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec = trained.spec
        if isinstance(spec, Eagle3Spec) and spec.vocab_map.value is VocabMap.PREFIX:
            yield self.finding(
                place=spec.vocab_map.key,
                message=f"the draft vocabulary has {spec.draft_vocab_size.value} of"
                f" {spec.vocab_size.value} tokens, and no map says which",
                expected="a tensor d2t with one offset for each draft id",
                found="no such tensor",
                advice="take d2t from the training run, and write it into the checkpoint",
            )


class MapBroken(TrainedRule):
    """A map that leaves the target's vocabulary, or names a token twice.

    What it checks
        That each draft id i becomes a target id i + d2t[i] within the vocabulary, and no two the
        same.

    Why it matters
        An id beyond the vocabulary is an index error at the first request; a token named twice
        means that offsets and absolute ids were mixed up.

    How to fix it
        Write d2t as offsets: target id minus draft id.

    Example
        d2t with absolute ids, as GGUF keeps them, in a safetensors file.
    """

    code = "V404"
    name = "map-broken"
    effect = "draft ids name other tokens, or none: an index error at the first request"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec = trained.spec
        name = next((n for n, role in trained.roles.items() if role == "d2t"), None)
        if not isinstance(spec, Eagle3Spec) or name is None:
            return
        try:
            offsets = trained.checkpoint.read_integers(name)
        except CheckpointError as error:
            yield self.skip(error.message)
            return
        ids = offsets
        if spec.vocab_map.value is VocabMap.OFFSETS:
            ids = [i + offset for i, offset in enumerate(offsets)]
        size = spec.vocab_size.value
        outside = sum(not 0 <= i < size for i in ids)
        double = len(ids) - len(set(ids))
        if ids and (outside or double):
            yield self.finding(
                place=trained.checkpoint.place(name),
                message=f"d2t sends {outside} draft ids outside the vocabulary"
                f" and {double} to a token that another id already names",
                expected=f"{len(ids)} different ids from 0 to {size - 1}",
                found=f"ids from {min(ids)} to {max(ids)}",
                advice="write d2t as offsets (target id minus draft id)",
            )


class MaskDisagrees(TrainedRule):
    """A training mask that names other tokens than the map.

    What it checks
        Whether t2d has one entry for each token of vocab_size, and marks those that d2t maps to.

    Why it matters
        No engine reads t2d, so nothing is served wrongly; but a trainer that resumes from the
        checkpoint would label its targets by it.

    How to fix it
        Write t2d anew from d2t: true at each i + d2t[i].

    Example
        A vocabulary that was rebuilt in one of the two tensors alone.
    """

    code = "V406"
    name = "mask-disagrees"
    severity = Severity.WARNING
    effect = "none when served; training that resumes would be mislabelled"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        names = {role: name for name, role in trained.roles.items()}
        spec = trained.spec
        if not isinstance(spec, Eagle3Spec) or spec.vocab_map.value is not VocabMap.OFFSETS:
            return
        if "d2t" not in names or "t2d" not in names:
            return
        try:
            offsets = trained.checkpoint.read_integers(names["d2t"])
            mask = trained.checkpoint.read_integers(names["t2d"])
        except CheckpointError as error:
            yield self.skip(error.message)
            return
        size = spec.vocab_size
        if len(mask) != size.value:
            yield self.finding(
                place=trained.checkpoint.place(names["t2d"]),
                message=f"t2d marks tokens of a vocabulary of {len(mask)},"
                f" and vocab_size is {size.value}",
                expected=f"{size.value} entries ({size.key})",
                found=f"{len(mask)} entries",
                advice="write the target's vocab_size into the config, or t2d anew from d2t",
            )
            return
        marked = {i for i, flag in enumerate(mask) if flag}
        mapped = {i + offset for i, offset in enumerate(offsets)}
        if marked != mapped:
            yield self.finding(
                place=trained.checkpoint.place(names["t2d"]),
                message=f"t2d marks {len(marked - mapped)} tokens that d2t does not map to,"
                f" and leaves out {len(mapped - marked)} that it does",
                expected=f"the {len(mapped)} tokens of d2t",
                found=f"{len(marked & mapped)} of them among {len(marked)}",
                advice="write t2d anew from d2t, or drop it: no engine reads it",
            )


class EmbeddingReplaced(FactRule):
    """Another embedding than the drafter's own.

    What it checks
        Whose embedding the drafter reads its tokens with.

    Why it matters
        Producers mostly save a frozen copy of the target's embedding, and an engine that puts the
        target's in its place changes nothing. Where the embedding was trained, it does.

    How to fix it
        Nothing, unless the embedding was trained.

    Example
        SGLang always puts the target's embedding in place where the widths agree.
    """

    code = "V405"
    name = "embedding-replaced"
    facts = ("embedding",)
    words = ("embedding",)
    saying = "{engine} reads tokens with {served} embedding; the files hold {trained}"
    effect = "none where the drafter's copy equals the target's; else other inputs"

    def _severity_of(self, before: Fact[Any], after: Fact[Any]) -> Severity:
        copied = before.value is Ownership.OWN and after.value is Ownership.TARGET
        return Severity.INFO if copied else Severity.ERROR


RULES = (HeadReplaced(), MapLost(), MapMissing(), MapBroken(), EmbeddingReplaced(), MaskDisagrees())
