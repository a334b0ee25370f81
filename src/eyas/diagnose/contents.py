"""What a drafter's matrices hold that no training leaves there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from eyas.diagnose.causes import CauseId
from eyas.diagnose.variant import Variant
from eyas.model.target import Target
from eyas.spec import Ownership

_ITERATIONS = 24
_SMALLEST = 16  # rows or columns: of less the edge of noise is too blurred
_SMALL = 256  # below it training may stay under the edge: its spread must be one of a start too
_START, _NEAR_START = (0.02, 0.01, 0.006), 0.03  # spreads that configs state, and how near is it
_COPY = 0.5  # the median cosine of an embedding's rows to the target's, below which it is no copy


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A role that holds something untrained, and what.

    `noise` if only its spectrum says so, `unlike` if it is only not what the target's is.
    """

    cause: CauseId
    role: str
    what: str
    noise: bool = False
    unlike: bool = False


def contents(variant: Variant, target: Target, roles: frozenset[str]) -> tuple[Content, ...]:
    """What is wrong with the numbers of `roles`, those that the files hold."""
    found = []
    for role in sorted(roles & variant.state.keys()):
        held = variant.state[role]
        if not held.is_floating_point() or not held.numel():
            continue
        content = content_of(role, held)
        if content is not None:
            found.append(content)
    known = {content.role for content in found}
    embedding = variant.state.get("embed_tokens.weight")
    owned = variant.spec.embedding.value is Ownership.OWN and "embed_tokens.weight" in roles
    if owned and embedding is not None and "embed_tokens.weight" not in known:
        median = _likeness(embedding, target.embedding_VH)
        if median is not None and median < _COPY:
            what = f"its rows have a median cosine of {median:.2f} to the target's"
            found.append(
                Content(
                    cause=CauseId.EMBEDDING_WRONG,
                    role="embed_tokens.weight",
                    what=what,
                    unlike=True,
                )
            )
    return tuple(found)


def content_of(role: str, held: Tensor) -> Content | None:
    """What is wrong with the numbers of one role, or None."""
    bad = held.numel() - int(held.isfinite().sum())
    if bad:
        what = f"{bad} of {held.numel()} numbers are NaN or infinite"
        return Content(cause=CauseId.WEIGHTS_NAN, role=role, what=what)
    embedding = role == "embed_tokens.weight"
    if not bool(held.any()):
        if role.endswith(".bias"):
            return None
        cause = CauseId.EMBEDDING_WRONG if embedding else CauseId.WEIGHTS_ZERO
        return Content(cause=cause, role=role, what=f"{held.numel()} zeros")
    if held.ndim != 2 or embedding or min(held.shape) < _SMALLEST:
        return None
    if min(held.shape) < _SMALL and not _spread_of_a_start(held):
        return None
    excess = strongest_direction(held)
    if excess > _noise_limit(min(held.shape)):
        return None
    what = f"its strongest direction is {excess:.2f} of what noise of its size has at most"
    return Content(cause=CauseId.WEIGHTS_AT_INIT, role=role, what=what, noise=True)


def strongest_direction(matrix: Tensor) -> float:
    """The largest singular value over the edge of noise of the same spread (Marchenko-Pastur).

    For independent numbers of standard deviation s that edge is s (√rows + √columns); training
    leaves directions above it. By power iteration, which is never too high.
    """
    matrix = matrix.float()
    spread = float(matrix.square().mean().sqrt())
    edge = spread * (math.sqrt(matrix.shape[0]) + math.sqrt(matrix.shape[1]))
    generator = torch.Generator().manual_seed(0)
    vector = torch.randn(matrix.shape[1], generator=generator)
    for _ in range(_ITERATIONS):
        vector = torch.nn.functional.normalize(matrix.T @ (matrix @ vector), dim=0)
    top = float(torch.linalg.vector_norm(matrix @ vector))
    return top / edge


def _noise_limit(smaller: int) -> float:
    """How far above the edge chance goes: it falls with the 2/3 power of the size (Tracy-Widom)."""
    return 1.0 + math.pow(smaller, -2 / 3)


def _spread_of_a_start(held: Tensor) -> bool:
    """Whether its spread is one that matrices are begun with.

    torch's Linear (1 / √(3 inputs)), Xavier, LeCun, He, and what configs state.
    """
    rows, columns = held.shape
    by_size = (1 / (3 * columns), 2 / (rows + columns), 1 / columns, 2 / columns)
    starts = (*_START, *(math.sqrt(variance) for variance in by_size))
    spread = float(held.float().square().mean().sqrt())
    return any(abs(spread / start - 1) < _NEAR_START for start in starts)


def _likeness(mine: Tensor, theirs: Tensor) -> float | None:
    rows = min(len(mine), len(theirs))
    if mine.shape[1] != theirs.shape[1]:
        return None
    chosen = torch.arange(0, rows, max(rows // 4096, 1))
    return float(torch.cosine_similarity(mine[chosen], theirs[chosen], dim=-1).median())
