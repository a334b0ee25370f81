"""The vocabularies, and the form of the draft-to-target id map, judged by its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from eyas.checkpoint import Checkpoint
from eyas.dialects.keys import Keys, needed
from eyas.dialects.tensors import Tensors
from eyas.errors import CheckpointError
from eyas.spec import Fact, VocabMap, VocabOrder, absent, assumed, inferred


def read_vocab_sizes(
    tensors: Tensors, layer: Keys, drafter: Keys, *, whose: str
) -> tuple[Fact[int], Fact[int]]:
    """The sizes of the target's vocabulary and of the drafter's; CheckpointError if unknown."""
    head = tensors.rows("lm_head.weight")
    whole = (
        layer.size("vocab_size")
        or tensors.rows("t2d")
        or tensors.rows("embed_tokens.weight")
        or (None if tensors.has("d2t") else head)
    )
    vocab_size = needed(whole, layer.place("vocab_size"))
    draft = (
        drafter.size("draft_vocab_size")
        or head
        or tensors.rows("d2t")
        or assumed(vocab_size.value, drafter.place("draft_vocab_size"), whose=whose)
    )
    return vocab_size, draft


def read_vocab_map(
    checkpoint: Checkpoint, tensors: dict[str, str], vocab_size: int, draft_vocab_size: int
) -> Fact[VocabMap]:
    """How the producer meant d2t. `tensors` maps role to tensor name.

    Every producer of Hugging Face directories stores offsets, so that is the answer unless the
    numbers, with t2d where it is there, can only be absolute ids.
    """
    d2t, t2d = tensors.get("d2t"), tensors.get("t2d")
    if d2t is None:
        if vocab_size == draft_vocab_size:
            return inferred(VocabMap.IDENTITY, checkpoint.place("lm_head.weight"))
        if t2d is not None:
            # The mask tells which ids are kept, and in ascending order that is the map.
            return inferred(VocabMap.OFFSETS, checkpoint.place(t2d))
        return inferred(VocabMap.PREFIX, checkpoint.place("d2t"))
    place = checkpoint.place(d2t)
    try:
        numbers = checkpoint.read_integers(d2t)
    except CheckpointError:
        return assumed(VocabMap.OFFSETS, place, whose="every producer of Hugging Face directories")
    offsets = [i + number for i, number in enumerate(numbers)]
    kept = _kept(checkpoint, t2d)
    if kept is not None and set(offsets) != kept and set(numbers) == kept:
        return inferred(VocabMap.ABSOLUTE, place)
    if not _are_ids(offsets, vocab_size) and _are_ids(numbers, vocab_size):
        return inferred(VocabMap.ABSOLUTE, place)
    return inferred(VocabMap.OFFSETS, place)


def read_vocab_order(
    checkpoint: Checkpoint, tensors: Mapping[str, str], form: VocabMap
) -> Fact[VocabOrder | None]:
    """Whether the map of `form` lists the target's ids in ascending order."""
    name = tensors.get("d2t")
    if name is None:
        if form is VocabMap.OFFSETS:  # told by the mask of kept ids alone, in ascending order
            return inferred(VocabOrder.SORTED, checkpoint.place(tensors["t2d"]))
        return absent(checkpoint.place("d2t"))
    try:
        numbers = checkpoint.read_integers(name)
    except CheckpointError:
        return absent(checkpoint.place(name))
    ids = numbers if form is VocabMap.ABSOLUTE else [i + n for i, n in enumerate(numbers)]
    rising = all(before < after for before, after in pairwise(ids))
    return inferred(VocabOrder.SORTED if rising else VocabOrder.UNSORTED, checkpoint.place(name))


def _kept(checkpoint: Checkpoint, t2d: str | None) -> set[int] | None:
    if t2d is None or checkpoint.tensors[t2d].dtype != "BOOL":
        return None
    return {i for i, keep in enumerate(checkpoint.read_integers(t2d)) if keep}


def _are_ids(numbers: list[int], vocab_size: int) -> bool:
    return len(set(numbers)) == len(numbers) and all(0 <= n < vocab_size for n in numbers)
