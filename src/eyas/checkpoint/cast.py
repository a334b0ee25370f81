"""Float numbers in another type: widened exactly, or rounded to the nearest, ties to even."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eyas.errors import CheckpointError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PLAIN = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
FLOATS = ("F16", "BF16", "F32", "F64")  # the types that can be cast, narrowest first


def cast(raw: bytes, before: str, after: str) -> bytes:
    """The numbers in `raw`, little-endian, of type `before` as type `after`.

    Both are of FLOATS. Raises CheckpointError where a finite number has no finite one in `after`.
    """
    if before == after:
        return raw
    import numpy as np

    # Every type goes through one in which all of its numbers are exact; rounded once, from there.
    numbers = _wide(raw, before)
    with np.errstate(over="ignore", under="ignore"):
        made = _rounded_to_bfloat16(numbers) if after == "BF16" else numbers.astype(_PLAIN[after])
        back = _wide(made.tobytes(), after)
    if not np.array_equal(np.isfinite(back), np.isfinite(numbers)):
        raise CheckpointError(
            f"a number of type {before} is too large for {after}", hint="keep the type it has"
        )
    return made.tobytes()


def is_exact(raw: bytes, before: str, after: str) -> bool:
    """Whether the numbers in `raw` of type `before` are the same in type `after`."""
    import numpy as np

    try:
        made = cast(raw, before, after)
    except CheckpointError:  # too large
        return False
    return np.array_equal(_wide(made, after), _wide(raw, before), equal_nan=True)


def widens(before: str, after: str) -> bool:
    """Whether every number of type `before` is one of type `after`."""
    return before == after or after == "F64" or (after == "F32" and before in ("F16", "BF16"))


def _wide(raw: bytes, dtype: str) -> NDArray[np.float64 | np.float32]:
    import numpy as np

    if dtype == "BF16":
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(raw, _PLAIN[dtype])


def _rounded_to_bfloat16(numbers: NDArray[np.float64 | np.float32]) -> NDArray[np.uint16]:
    """The upper halves of float32 numbers, rounded to the nearest, ties to even."""
    import numpy as np

    single = _rounded_to_odd(numbers) if numbers.dtype == np.float64 else numbers
    bits = single.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16
    rounded = np.where(np.isnan(numbers), (bits >> 16) | np.uint32(0x40), rounded)
    return rounded.astype("<u2")


def _rounded_to_odd(numbers: NDArray[np.float64 | np.float32]) -> NDArray[np.float32]:
    """float64 as float32 whose last bit tells that something was cut off.

    A second rounding then gives what one alone would have given (S. Boldo and G. Melquiond,
    "Emulation of FMA and correctly rounded sums", 2008).
    """
    import numpy as np

    near = numbers.astype(np.float32)
    past = np.abs(near.astype(np.float64)) > np.abs(numbers)
    bits = near.view(np.uint32) - past.astype(np.uint32)  # cut off towards zero
    inexact = (bits.view(np.float32).astype(np.float64) != numbers) & np.isfinite(numbers)
    odd: NDArray[np.float32] = (bits | inexact.astype(np.uint32)).view(np.float32)
    return odd
