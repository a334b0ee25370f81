"""How like the target's embedding the drafter's own one is, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eyas.checkpoint.target_weights import embedding_of
from eyas.checks.values_decode import UNSCALED, decode, pieces
from eyas.errors import CheckpointError

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TensorHeader
    from eyas.checks.view import Trained

_ELEMENTS = 2**20  # numbers that are compared together
NO_TARGET_WEIGHTS = "no --target whose weights are at hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """The embeddings of drafter and target, compared over the rows that both have.

    `median` is the median of the cosines between the two rows of a token; `equal` counts the rows
    that differ by less than the rounding of bfloat16. Rows of zeros are in neither.
    """

    tensor: str
    rows: int
    equal: int
    median: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlikened:
    """Why the embeddings were not compared; `reason` is None where the drafter has none."""

    reason: str | None


def embedding_likeness(trained: Trained) -> Likeness | Unlikened:
    """The drafter's own embedding beside the target's, where both are at hand."""
    own = next((n for n, role in trained.roles.items() if role == "embed_tokens.weight"), None)
    if own is None:
        return Unlikened(reason=None)
    if trained.target is None:
        return Unlikened(reason=NO_TARGET_WEIGHTS)
    try:
        target, other = embedding_of(trained.target)
    except CheckpointError as error:
        return Unlikened(reason=f"{NO_TARGET_WEIGHTS}: {error.message}")
    mine = trained.checkpoint.tensors[own]
    for header, whose in ((mine, "drafter"), (other, "target")):
        if header.dtype not in UNSCALED:
            return Unlikened(reason=f"the embedding of the {whose} is stored as {header.dtype}")
    if mine.shape[1:] != other.shape[1:]:
        return Unlikened(reason=f"the embeddings are {mine.shape[-1]} and {other.shape[-1]} wide")
    return _compared(trained.checkpoint, mine, target, other)


def _compared(
    draft: Checkpoint, mine: TensorHeader, target: Checkpoint, other: TensorHeader
) -> Likeness | Unlikened:
    import numpy as np

    width, rows = mine.shape[1], min(mine.shape[0], other.shape[0])
    if not 0 < width <= _ELEMENTS or not rows:
        return Unlikened(reason=f"an embedding {width} wide with {rows} rows is none")
    together = max(_ELEMENTS // width, 1)
    sides = [
        pieces(checkpoint, header.name, together * header.nbytes // header.shape[0])
        for checkpoint, header in ((draft, mine), (target, other))
    ]
    cosines, equal = [], 0
    # the smaller vocabulary ends it: the rows behind it have no counterpart
    for left, right in zip(*sides, strict=False):
        a = decode(left, mine.dtype).reshape(-1, width)
        b = decode(right, other.dtype).reshape(-1, width)
        a, b = a[: len(b)], b[: len(a)]
        lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        filled = np.isfinite(lengths) & (lengths > 0)
        products = np.einsum("rw,rw->r", a[filled], b[filled])
        cosines.append(products / lengths[filled])
        # 2**-8 is the largest relative error of a number that was rounded to bfloat16.
        close = np.abs(a[filled] - b[filled]) <= 2**-8 * np.abs(b[filled])
        equal += int(close.all(axis=1).sum())
    every = np.concatenate(cosines)
    if not every.size:
        return Unlikened(reason="no token has a row in both embeddings that is not zero")
    return Likeness(
        tensor=mine.name, rows=int(every.size), equal=equal, median=float(np.median(every))
    )
