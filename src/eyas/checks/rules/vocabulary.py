"""V4: whose embedding and head are used, and whether draft ids become the target's."""

from __future__ import annotations

from typing import Any

from eyas.checks.finding import Severity
from eyas.checks.rules.fact import FactRule
from eyas.spec import Fact, Ownership


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


RULES = (HeadReplaced(), MapLost(), EmbeddingReplaced())
