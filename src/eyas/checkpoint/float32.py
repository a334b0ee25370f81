"""Numbers as float32 holds them."""

from __future__ import annotations

import struct


def as_float32(value: float) -> float | None:
    """`value` rounded to float32; None where it is beyond its range."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return None


def shortest(value: float) -> float:
    """The shortest decimal that float32 holds as it holds `value`: 1e-05 for 9.999999747e-06.

    `value` itself beyond float32's range.
    """
    held = as_float32(value)
    if held is None:
        return value
    for digits in range(6, 9):
        decimal = float(f"{held:.{digits}g}")
        if as_float32(decimal) == held:
            return decimal
    return float(f"{held:.9g}")  # nine digits tell every float32 apart
