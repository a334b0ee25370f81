"""The embedding and the head as they could be if the target's weights were at hand, which are not.

A drafter so edited is never written: it tells whether those weights are all that is wanting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eyas.convert.edits.ownership import EMBEDDING, HEAD
from eyas.convert.material import Material, Part, is_weight
from eyas.errors import TargetNeededError
from eyas.spec import Ownership, VocabMap


@dataclass(frozen=True, slots=True)
class Unseen:
    """A matrix of the target of which the type and the shape alone are supposed."""

    dtype: str
    shape: tuple[int, ...]

    def read(self, ranges: Sequence[range]) -> bytes:
        """Raises TargetNeededError: nobody has the numbers."""
        raise TargetNeededError("the weights of the target are not at hand")


def unseen_forms(material: Material, *, heads: bool) -> list[Material]:
    """`material` with what is the target's stored, with what is its own left out, and each alone.

    Its own can be left out where the target's may have the same numbers. With `heads` only a head
    that is the target's is stored: engines take the embedding alike wherever it is.
    """
    if heads:
        is_targets = material.facts.head.value is Ownership.TARGET
        stored = _moved(material, HEAD) if is_targets else None
        return [] if stored is None else [stored]
    embedding, head = _moved(material, EMBEDDING), _moved(material, HEAD)
    both = None if embedding is None else _moved(embedding, HEAD)
    return [form for form in (head, embedding, both) if form is not None]


def _moved(material: Material, role: str) -> Material | None:
    """`material` with `role` stored where it was the target's, or left out where it was its own."""
    spec = material.facts
    name = "embedding" if role == EMBEDDING else "head"
    owner = getattr(spec, name)
    if owner.value is Ownership.TARGET:
        count = spec.vocab_size if role == EMBEDDING else spec.draft_vocab_size
        kinds = [part.rows.dtype for name, part in material.parts.items() if is_weight(name, part)]
        rows = Unseen(kinds[0], (count.value, spec.hidden_size.value))
        part, now = Part(rows=rows, origin="the target"), Ownership.OWN
        return material.changed("", facts={name: replace(owner, value=now)}, parts={role: part})
    tied = spec.head.value is Ownership.TIED
    reduced = role == HEAD and spec.vocab_map.value is not VocabMap.IDENTITY
    if owner.value is not Ownership.OWN or tied or reduced:
        return None
    facts = {name: replace(owner, value=Ownership.TARGET)}
    return material.changed("", facts=facts, parts={role: None})
