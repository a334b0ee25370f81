"""The vocabulary map as offsets in ascending order, and the mask of kept ids that belongs to it."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from eyas.checkpoint.rows import Gathered, Made, Rows, blocks
from eyas.convert.material import Material, Part
from eyas.errors import ConversionError
from eyas.spec import Ownership, VocabMap, VocabOrder, absent, inferred

if TYPE_CHECKING:
    from eyas.checkpoint import TargetFacts

_CODES = {"BOOL": "?", "U8": "B", "I8": "b", "I16": "h", "I32": "i", "I64": "q"}
_MAPPED = (VocabMap.OFFSETS, VocabMap.ABSOLUTE)


def target_ids(material: Material) -> tuple[int, ...] | None:
    """The target's id of each row of the head; None where there is no map.

    Raises ConversionError for a map whose numbers are not the ids of a target's tokens.
    """
    spec = material.facts
    if spec.vocab_map.value not in _MAPPED:
        return None
    d2t = material.parts.get("d2t")
    if d2t is None:  # told by the mask alone
        return tuple(i for i, keep in enumerate(_integers(material.parts["t2d"])) if keep)
    numbers = _integers(d2t)
    offsets = spec.vocab_map.value is VocabMap.OFFSETS
    ids = tuple(i + n for i, n in enumerate(numbers)) if offsets else tuple(numbers)
    size = spec.vocab_size.value
    outside = next((i for i in ids if not 0 <= i < size), None)
    if outside is not None:
        raise ConversionError(
            f"{d2t.origin} maps a draft id to {outside}, and the target has {size} tokens",
            hint="look for the map that belongs to these weights",
        )
    if len(set(ids)) != len(ids):
        raise ConversionError(
            f"{d2t.origin} maps two draft ids to one token",
            hint="look for the map that belongs to these weights",
        )
    return ids


def with_sorted_offsets(material: Material) -> Material:
    """`material` with d2t as ascending offsets, and the rows of its head in that order.

    A drafter without a map stays as it is.
    """
    ids = target_ids(material)
    if ids is None:
        return material
    spec = material.facts
    rising = all(before < after for before, after in pairwise(ids))
    if rising and spec.vocab_map.value is VocabMap.OFFSETS and "d2t" in material.parts:
        return material
    order = sorted(range(len(ids)), key=ids.__getitem__)
    parts: dict[str, Part | None] = {"d2t": d2t_of([ids[row] for row in order])}
    said = [] if spec.vocab_map.value is VocabMap.OFFSETS else ["absolute ids become offsets"]
    if "d2t" not in material.parts:
        said.append("d2t is made from t2d")
    if not rising:
        head = material.parts.get("lm_head.weight")
        if head is None or spec.head.value is not Ownership.OWN:
            raise ConversionError(
                "the map is not sorted, and there are no rows of a head to sort with it"
            )
        parts["lm_head.weight"] = replace(head, rows=Gathered(head.rows, order))
        said.append("the map is sorted, and the rows of the head with it")
    return material.changed(
        "; ".join(said),
        facts={
            "vocab_map": inferred(VocabMap.OFFSETS, spec.vocab_map.key),
            "vocab_order": inferred(VocabOrder.SORTED, spec.vocab_order.key),
        },
        parts=parts,
    )


def with_mask(material: Material) -> Material:
    """`material` with t2d, the mask of the target's ids that the map keeps, where it has a map."""
    ids = target_ids(material)
    if ids is None:
        return material
    kept = bytearray(material.facts.vocab_size.value)
    for token in ids:
        kept[token] = 1
    mask = Made("BOOL", (len(kept),), bytes(kept))
    before = material.parts.get("t2d")
    if before is not None and _same(before.rows, mask):
        return material
    what = "t2d is rebuilt from d2t" if before is not None else "t2d is made from d2t"
    return material.changed(what, parts={"t2d": Part(rows=mask, origin="made from d2t")})


def without_mask(material: Material) -> Material:
    """`material` without t2d, where its map tells the same."""
    if "t2d" not in material.parts or "d2t" not in material.parts:
        return material
    return material.changed("t2d is left out, which d2t tells", parts={"t2d": None})


def with_stated_map(material: Material, target: TargetFacts | None) -> Material | None:
    """`material` with a map to the first ids of the target, where it has none and drafts these."""
    spec = material.facts
    if spec.vocab_map.value is not VocabMap.PREFIX or spec.head.value is not Ownership.OWN:
        return None
    return material.changed(
        "d2t is made, which leads to the first ids: they are drafted as they are",
        facts={
            "vocab_map": inferred(VocabMap.OFFSETS, spec.vocab_map.key),
            "vocab_order": inferred(VocabOrder.SORTED, spec.vocab_order.key),
        },
        parts={"d2t": d2t_of(list(range(spec.draft_vocab_size.value)))},
    )


def without_whole_map(material: Material, target: TargetFacts | None) -> Material | None:
    """`material` without a map that leads from each id of the whole vocabulary to itself."""
    spec = material.facts
    if spec.vocab_size.value != spec.draft_vocab_size.value:
        return None
    ids = target_ids(material)
    if ids is None or len(ids) != spec.vocab_size.value or ids != tuple(range(len(ids))):
        return None
    return material.changed(
        "d2t is left out, which leads from each id to itself",
        facts={
            "vocab_map": inferred(VocabMap.IDENTITY, spec.vocab_map.key),
            "vocab_order": absent(spec.vocab_order.key),
        },
        parts={"d2t": None, "t2d": None},
    )


def d2t_of(ids: list[int]) -> Part:
    """The map of ascending `ids` as offsets."""
    offsets = struct.pack(f"<{len(ids)}q", *(token - i for i, token in enumerate(ids)))
    return Part(rows=Made("I64", (len(ids),), offsets), origin="made from the map")


def _integers(part: Part) -> tuple[int, ...]:
    rows = part.rows
    code = _CODES.get(rows.dtype)
    if code is None or len(rows.shape) != 1:
        raise ConversionError(
            f"{part.origin} is no list of integers, and a vocabulary map is one",
            hint="export it as int64",
        )
    return struct.unpack(f"<{rows.shape[0]}{code}", b"".join(blocks(rows)))


def _same(one: Rows, other: Rows) -> bool:
    return (one.dtype, one.shape) == (other.dtype, other.shape) and (
        b"".join(blocks(one)) == b"".join(blocks(other))
    )
