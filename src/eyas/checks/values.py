"""DraftValues: what the weights themselves look like, read in one pass and in little memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan, prod, sqrt
from typing import TYPE_CHECKING

from eyas.checks.values_decode import DECODED, decode, pieces
from eyas.checks.values_embedding import Likeness, Unlikened, embedding_likeness

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TensorHeader
    from eyas.checks.view import Trained

MAPS = ("d2t", "t2d")
_PIECE = 2**21  # bytes that are looked at together
_SHORTEST_ROW = 8  # elements: shorter rows are equal by chance
_LONGEST_ROW = 2**20  # bytes: no drafter is half a million wide
_MOST_ROWS = 2**18  # of the rows beyond the largest vocabulary none is compared


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorValues:
    """The numbers of one tensor: its moments, and how many of its rows repeat an earlier one.

    `mean`, `std` and `kurtosis` (3 for a normal distribution, 1.8 for a uniform one) are those of
    the finite numbers; NaN where there are none, and kurtosis where all are the same. `rows` is
    the number of rows that were compared, 0 for a tensor without rows.
    """

    shape: tuple[int, ...]
    dtype: str
    elements: int
    zeros: int
    not_finite: int
    largest: float
    mean: float
    std: float
    kurtosis: float
    rows: int
    repeated_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftValues:
    """What was read of the tensors that the drafter computes with, by their names.

    `unread` gives the type of each tensor that is stored in one that eyas does not decode.
    """

    tensors: Mapping[str, TensorValues]
    unread: Mapping[str, str]
    embedding: Likeness | Unlikened


def read_values(trained: Trained) -> DraftValues:
    """The values of every matrix, norm and bias of `trained`; raises CheckpointError."""
    checkpoint = trained.checkpoint
    headers = [
        header
        for name, header in checkpoint.tensors.items()
        if trained.roles.get(name, MAPS[0]) not in MAPS and header.nbytes
    ]
    return DraftValues(
        tensors={h.name: _read(checkpoint, h) for h in headers if h.dtype in DECODED},
        unread={h.name: h.dtype for h in headers if h.dtype not in DECODED},
        embedding=embedding_likeness(trained),
    )


def _read(checkpoint: Checkpoint, header: TensorHeader) -> TensorValues:
    elements = prod(header.shape)
    width = prod(header.shape[1:])
    row = header.nbytes // header.shape[0] if len(header.shape) > 1 else 0
    has_rows = width >= _SHORTEST_ROW and row <= _LONGEST_ROW
    size = max(_PIECE // row, 1) * row if has_rows else _PIECE
    sums, seen = _Sums(), _Rows()
    for piece in pieces(checkpoint, header.name, size):
        sums.add(piece, header.dtype)
        if has_rows:
            seen.add(piece, row)
    return TensorValues(
        shape=header.shape,
        dtype=header.dtype,
        elements=elements,
        zeros=sums.zeros,
        not_finite=elements - sums.count,
        largest=sums.largest,
        mean=sums.mean,
        std=sums.std,
        kurtosis=sums.kurtosis,
        rows=seen.count,
        repeated_rows=seen.count - len(seen.different),
    )


@dataclass(slots=True)
class _Sums:
    """Sums of the powers of the finite numbers, which give their moments."""

    count: int = 0
    zeros: int = 0
    largest: float = 0.0
    powers: list[float] = field(default_factory=lambda: [0.0] * 4)

    def add(self, raw: bytes, dtype: str) -> None:
        """Takes in another piece of the tensor."""
        import numpy as np

        numbers = decode(raw, dtype)
        finite = np.isfinite(numbers)
        if not finite.all():
            numbers = numbers[finite]
        if not numbers.size:
            return
        self.count += numbers.size
        self.zeros += numbers.size - int(np.count_nonzero(numbers))
        self.largest = max(self.largest, float(np.abs(numbers).max()))
        with np.errstate(over="ignore", invalid="ignore"):  # 64-bit numbers near the largest one
            squares = numbers * numbers
            for index, power in enumerate(
                (numbers.sum(), squares.sum(), squares @ numbers, squares @ squares)
            ):
                self.powers[index] += float(power)

    @property
    def mean(self) -> float:
        return self.powers[0] / self.count if self.count else nan

    @property
    def variance(self) -> float:
        return max(self.powers[1] / self.count - self.mean**2, 0.0) if self.count else nan

    @property
    def std(self) -> float:
        return sqrt(self.variance)

    @property
    def kurtosis(self) -> float:
        if not self.count or not self.variance:
            return nan
        mean, (_, second, third, fourth) = self.mean, (p / self.count for p in self.powers)
        central = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4
        return central / self.variance**2


@dataclass(slots=True)
class _Rows:
    """How many rows there were, and which were different: by hash, so that few bytes are kept."""

    count: int = 0
    different: set[int] = field(default_factory=set)

    def add(self, raw: bytes, row: int) -> None:
        """Takes in another piece, which begins with a row."""
        for start in range(0, len(raw), row):
            if self.count < _MOST_ROWS:
                self.count += 1
                self.different.add(hash(raw[start : start + row]))
