"""A smaller draft vocabulary: the tokens that are seen most, and the rows of the head for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eyas.checkpoint.rows import Gathered
from eyas.convert.edits.maps import d2t_of, target_ids
from eyas.convert.edits.ownership import HEAD, with_own_head
from eyas.convert.material import Material
from eyas.errors import ConversionError, UsageError
from eyas.spec import VocabMap, VocabOrder, inferred, most_counted

if TYPE_CHECKING:
    from eyas.checkpoint import TargetFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """How many tokens are kept, by which counts of the target's ids, and which in any case.

    `source` is how the counts are given to `eyas convert`, for a command that repeats them.
    """

    size: int
    counts: Mapping[int, float]
    always: Iterable[int] = ()
    source: tuple[str, str] = ("--counts", "FILE")


def pruned(material: Material, pruning: Pruning, target: TargetFacts | None) -> Material:
    """`material` with the head's rows of the most counted tokens alone, and a map to their ids.

    The logits of the tokens that are kept stay what they are; those of the others are gone. A head
    that is the target's or tied is stored first. Raises UsageError for a size that is no smaller,
    ConversionError where the head is not at hand.
    """
    spec, before = material.facts, material.facts.draft_vocab_size.value
    if not 0 < pruning.size < before:
        raise UsageError(
            f"a draft vocabulary of {pruning.size} is no part of the drafter's {before} tokens",
            hint="name a smaller number",
        )
    if spec.vocab_map.value is VocabMap.PREFIX:
        raise ConversionError("the drafter has no map of its reduced vocabulary to keep a part of")
    material = with_own_head(material, target)
    ids = target_ids(material) or tuple(range(before))
    kept = most_counted(pruning.counts, among=ids, size=pruning.size, always=pruning.always)
    row_of = {token: row for row, token in enumerate(ids)}
    head = material.parts[HEAD]
    total = sum(pruning.counts.values())
    covered = sum(pruning.counts.get(token, 0.0) for token in kept) / total if total else 0.0
    spec = material.facts
    parts = {
        HEAD: replace(head, rows=Gathered(head.rows, [row_of[token] for token in kept])),
        "d2t": d2t_of(list(kept)),
        "t2d": None,
    }
    return material.changed(
        f"the draft vocabulary is cut from {before} tokens to {pruning.size}, which are"
        f" {covered:.2%} of those counted; it can draft no other",
        facts={
            "draft_vocab_size": replace(spec.draft_vocab_size, value=pruning.size),
            "vocab_map": inferred(VocabMap.OFFSETS, spec.vocab_map.key),
            "vocab_order": inferred(VocabOrder.SORTED, spec.vocab_order.key),
        },
        parts=parts,
    )
