"""Numbers out of the bytes of a tensor, in every float type that drafters are stored in."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from eyas.checkpoint import Checkpoint

# Plain types and their names in numpy; bfloat16 is the upper half of a float32.
_PLAIN = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
# Eight-bit floats: exponent bits, mantissa bits, bias, and the bytes that are no number.
# https://arxiv.org/abs/2209.05433 (E4M3, E5M2); the FNUZ kinds have one NaN and no infinity.
_EIGHT_BITS: dict[str, tuple[int, int, int, frozenset[int]]] = {
    "F8_E4M3": (4, 3, 7, frozenset({0x7F, 0xFF})),
    "F8_E5M2": (5, 2, 15, frozenset({*range(0x7C, 0x80), *range(0xFC, 0x100)})),
    "F8_E4M3FNUZ": (4, 3, 8, frozenset({0x80})),
    "F8_E5M2FNUZ": (5, 2, 16, frozenset({0x80})),
}
UNSCALED = ("BF16", *_PLAIN)  # what is stored is what is multiplied with
DECODED = (*UNSCALED, *_EIGHT_BITS)


def decode(raw: bytes | memoryview, dtype: str) -> NDArray[np.float64]:
    """The numbers in `raw`, little-endian; `dtype` is one of DECODED."""
    import numpy as np

    if dtype == "BF16":
        halves = np.frombuffer(raw, "<u2").astype(np.uint32)
        return (halves << 16).view(np.float32).astype(np.float64)
    if dtype in _PLAIN:
        return np.frombuffer(raw, _PLAIN[dtype]).astype(np.float64)
    return np.asarray(_table(dtype)[np.frombuffer(raw, np.uint8)])


def pieces(checkpoint: Checkpoint, name: str, size: int) -> Iterator[bytes]:
    """The bytes of a tensor in pieces of exactly `size`, the last one shorter."""
    kept = bytearray()
    for chunk in checkpoint.chunks(name):
        kept += chunk
        whole = len(kept) - len(kept) % size
        for start in range(0, whole, size):
            yield bytes(kept[start : start + size])
        del kept[:whole]
    if kept:
        yield bytes(kept)


@cache
def _table(dtype: str) -> NDArray[np.float64]:
    """The number that each of the 256 bytes stands for; infinities count as no numbers."""
    import numpy as np

    exponent_bits, mantissa_bits, bias, no_numbers = _EIGHT_BITS[dtype]
    values: list[Any] = []
    for byte in range(256):
        if byte in no_numbers:
            values.append(float("nan"))
            continue
        sign = -1.0 if byte & 0x80 else 1.0
        exponent = byte >> mantissa_bits & (1 << exponent_bits) - 1
        fraction = (byte & (1 << mantissa_bits) - 1) / (1 << mantissa_bits)
        if exponent == 0:  # subnormal: no hidden bit
            values.append(sign * fraction * 2.0 ** (1 - bias))
        else:
            values.append(sign * (1 + fraction) * 2.0 ** (exponent - bias))
    return np.array(values)
