"""Whether two tensors hold the same numbers, read block by block."""

from __future__ import annotations

from eyas.checkpoint.cast import widens
from eyas.checkpoint.rows import Cast, Rows, blocks


def same_numbers(one: Rows, other: Rows) -> bool:
    """Whether shapes and numbers are equal, bit by bit in the wider of the two types.

    Types of which neither holds every number of the other are not the same.
    """
    if one.shape != other.shape:
        return False
    if one.dtype != other.dtype:
        if widens(one.dtype, other.dtype):
            one = Cast(one, other.dtype)
        elif widens(other.dtype, one.dtype):
            other = Cast(other, one.dtype)
        else:
            return False
    return all(left == right for left, right in zip(blocks(one), blocks(other), strict=True))
