"""A tensor as rows that are read when they are asked for, in the order and type that is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Protocol

from eyas.checkpoint.cast import cast
from eyas.checkpoint.checkpoint import Checkpoint
from eyas.checkpoint.header import tensor_nbytes
from eyas.checkpoint.spans import Span
from eyas.checkpoint.write import TensorBytes

_TOGETHER = 8 * 2**20  # bytes that are read and changed at a time


class Rows(Protocol):
    """A tensor of safetensors type `dtype` whose rows (of dimension 0) can be read."""

    @property
    def dtype(self) -> str:
        """The safetensors name of its type."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes, rows first."""

    def read(self, ranges: Sequence[range]) -> bytes:
        """The bytes of the rows of each range in turn, little-endian and row-major.

        The ranges count upwards by one. Raises CheckpointError where the file cannot be read.
        """


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Tensor `name` of `checkpoint` as its file has it."""

    checkpoint: Checkpoint
    name: str

    @property
    def dtype(self) -> str:
        """The type in the file."""
        return self.checkpoint.tensors[self.name].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes in the file."""
        return self.checkpoint.tensors[self.name].shape

    def read(self, ranges: Sequence[range]) -> bytes:
        """See Rows."""
        width = row_nbytes(self)
        spans = [(rows.start * width, len(rows) * width) for rows in ranges]
        return b"".join(self.checkpoint.spans(self.name, spans))


@dataclass(frozen=True, slots=True)
class Gathered:
    """Row i is row ``order[i]`` of another tensor: permuted, cut or picked."""

    of: Rows
    order: Sequence[int]

    @property
    def dtype(self) -> str:
        """The other's type."""
        return self.of.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The other's sizes but for the number of rows."""
        return (len(self.order), *self.of.shape[1:])

    def read(self, ranges: Sequence[range]) -> bytes:
        """See Rows; neighbours of the other tensor are read together."""
        if isinstance(self.order, range):  # a part of the other tensor
            return self.of.read([self.order[rows.start : rows.stop] for rows in ranges])
        picked = (self.order[i] for rows in ranges for i in rows)
        return self.of.read(_runs(picked))


@dataclass(frozen=True, slots=True)
class GatheredColumns:
    """Rows cut into parts of equal width, one for each of `order`: part i is part ``order[i]``."""

    of: Rows
    order: Sequence[int]

    @property
    def dtype(self) -> str:
        """The other's type."""
        return self.of.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The other's sizes."""
        return self.of.shape

    def read(self, ranges: Sequence[range]) -> bytes:
        """See Rows."""
        raw, width = memoryview(self.of.read(ranges)), row_nbytes(self) // len(self.order)
        starts = range(0, len(raw), row_nbytes(self)) if raw else ()
        parts = ((start + part * width for part in self.order) for start in starts)
        return b"".join(raw[at : at + width] for row in parts for at in row)


@dataclass(frozen=True, slots=True)
class Cast:
    """The numbers of another float tensor in type `dtype`, rounded where they must be."""

    of: Rows
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The other's sizes."""
        return self.of.shape

    def read(self, ranges: Sequence[range]) -> bytes:
        """See Rows."""
        return cast(self.of.read(ranges), self.of.dtype, self.dtype)


@dataclass(frozen=True, slots=True)
class Made:
    """A tensor that is in no file, such as a rebuilt vocabulary map."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def read(self, ranges: Sequence[range]) -> bytes:
        """See Rows."""
        width = row_nbytes(self)
        return b"".join(self.data[rows.start * width : rows.stop * width] for rows in ranges)


def row_nbytes(rows: Rows) -> int:
    """The bytes of one row; 0 for a tensor without rows."""
    return tensor_nbytes(rows.dtype, rows.shape[1:]) if prod(rows.shape) else 0


def blocks(rows: Rows, together: int = _TOGETHER) -> Iterator[bytes]:
    """All bytes of `rows` in order, in pieces of some `together` bytes."""
    if not rows.shape:  # a scalar is a row of its own
        yield rows.read([range(1)])
        return
    step = max(together // max(row_nbytes(rows), 1), 1)
    for start in range(0, rows.shape[0], step):
        yield rows.read([range(start, min(start + step, rows.shape[0]))])


def tensor_bytes(rows: Rows) -> TensorBytes:
    """`rows` as what a checkpoint's writer takes, read when it is written."""
    data = span_of(rows) or partial(blocks, rows)
    return TensorBytes(dtype=rows.dtype, shape=rows.shape, data=data)


def span_of(rows: Rows) -> Span | None:
    """Where the bytes of `rows` lie in a file, one after the other; None where they do not."""
    if isinstance(rows, StoredRows):
        return rows.checkpoint.span(rows.name)
    if not isinstance(rows, Gathered) or not isinstance(rows.order, range) or not rows.order:
        return None
    whole = span_of(rows.of)
    if whole is None or rows.order.step != 1:
        return None
    return Span(whole.file, whole.start + rows.order.start * row_nbytes(rows.of))


def _runs(numbers: Iterator[int]) -> list[range]:
    """`numbers` in their order, those that count upwards by one together."""
    runs: list[range] = []
    start = stop = next(numbers, None)
    if start is None or stop is None:
        return runs
    stop += 1
    for number in numbers:
        if number != stop:
            runs.append(range(start, stop))
            start = number
        stop = number + 1
    runs.append(range(start, stop))
    return runs
