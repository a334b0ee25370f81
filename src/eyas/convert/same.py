"""Whether two tensors hold the same numbers, read block by block."""

from __future__ import annotations

from eyas.checkpoint.cast import widens
from eyas.checkpoint.header import tensor_nbytes
from eyas.checkpoint.rows import Cast, Rows, blocks, span_of
from eyas.checkpoint.same_bytes import same_spans


def same_numbers(one: Rows, other: Rows) -> bool:
    """Whether shapes and numbers are equal, bit by bit in the wider of the two types.

    Types of which neither holds every number of the other are not the same.
    """
    if one.shape != other.shape:
        return False
    spans = span_of(one), span_of(other)
    if one.dtype == other.dtype and spans[0] and spans[1]:
        return same_spans(spans[0], spans[1], tensor_nbytes(one.dtype, one.shape))
    if one.dtype != other.dtype:
        if widens(one.dtype, other.dtype):
            one = Cast(one, other.dtype)
        elif widens(other.dtype, one.dtype):
            other = Cast(other, one.dtype)
        else:
            return False
    return all(left == right for left, right in zip(blocks(one), blocks(other), strict=True))
