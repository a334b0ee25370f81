"""Wishes: what is asked of a conversion beside its goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eyas.convert.edits.dtype import with_dtype
from eyas.convert.edits.ownership import (
    with_own_embedding,
    with_own_head,
    without_own_embedding,
    without_own_head,
)
from eyas.convert.edits.vocabulary import Pruning, pruned
from eyas.convert.material import Material
from eyas.convert.share import Share

if TYPE_CHECKING:
    from eyas.checkpoint import TargetFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Of the drafter's weights: `dtype` is torch's name of a type, None for the one they have.

    `pruning` is None where the draft vocabulary stays what it is, and `shard_bytes` where the
    weights are one file.
    """

    embedding: Share = Share.KEEP
    head: Share = Share.KEEP
    dtype: str | None = None
    pruning: Pruning | None = None
    shard_bytes: int | None = None

    def granted(self, material: Material, target: TargetFacts | None) -> Material:
        """`material` as wished; raises ConversionError where that would lose something."""
        if self.pruning is not None:
            material = pruned(material, self.pruning, target)
        if self.embedding is Share.ADD:
            material = with_own_embedding(material, target)
        if self.head is Share.ADD:
            material = with_own_head(material, target)
        if self.embedding is Share.LEAVE:
            material = without_own_embedding(material, target)
        if self.head is Share.LEAVE:
            material = without_own_head(material, target)
        return material if self.dtype is None else with_dtype(material, self.dtype)

    def options(self) -> tuple[str, ...]:
        """The words of `eyas convert` that say this."""
        pairs: list[tuple[str, str]] = []
        if self.embedding is not Share.KEEP:
            pairs.append(("--embedding", self.embedding.value))
        if self.head is not Share.KEEP:
            pairs.append(("--head", self.head.value))
        if self.dtype is not None:
            pairs.append(("--dtype", self.dtype))
        if self.pruning is not None:
            pairs += [("--draft-vocab", str(self.pruning.size)), self.pruning.source]
        if self.shard_bytes is not None:
            pairs.append(("--shard-size", str(self.shard_bytes)))
        return tuple(word for pair in pairs for word in pair)


NO_WISHES = Wishes()
