"""Casting floats, against torch."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import torch

from eyas.checkpoint.cast import FLOATS, cast, is_exact, widens
from eyas.errors import CheckpointError

TYPES = {
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}
# Ties, subnormals, the ends of each type's range, signed zeros, infinities and a NaN.
EDGES = [0.0, -0.0, 1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-9, -1 - 2**-9, 2**-133, 2**-149]
EDGES += [6.1e-5, 5.96e-8, 65504.0, 3.3895e38, float("inf"), float("-inf"), float("nan")]
# What two roundings, by way of float32, would get wrong.
EDGES += [1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, -(1 + 2**-8 + 2**-40)]


def numbers(dtype: str) -> torch.Tensor:
    random = torch.Generator().manual_seed(0)
    drawn = torch.randn(4096, generator=random, dtype=torch.float64)
    scaled = drawn * 2.0 ** torch.randint(-14, 15, (4096,), generator=random)
    return torch.cat([torch.tensor(EDGES, dtype=torch.float64), scaled]).to(TYPES[dtype])


def raw(tensor: torch.Tensor) -> bytes:
    return tensor.view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("before", FLOATS)
@pytest.mark.parametrize("after", FLOATS)
def test_a_cast_rounds_once_to_the_nearest(before: str, after: str) -> None:
    given = numbers(before)
    if after == "F16":  # the finite ones of the others that are beyond it are refused
        given = given[~(given.isfinite() & (given.double().abs() > 65504))]
    if after == "BF16":
        given = given[~(given.isfinite() & (given.double().abs() > 3.38e38))]
    expected = given.double()
    if after != "F64":
        # torch goes from float64 to bfloat16 by way of float32, and rounds twice
        expected = once(expected, after)
    made = torch.frombuffer(bytearray(cast(raw(given), before, after)), dtype=TYPES[after])
    assert torch.equal(made.double().nan_to_num(1e99), expected.nan_to_num(1e99))
    assert torch.equal(made.signbit(), given.signbit())


def once(exact: torch.Tensor, dtype: str) -> torch.Tensor:
    """Each number's nearest neighbour in `dtype`, ties to the even one, by looking at both."""
    near = exact.to(TYPES[dtype]).double()
    step = {"F16": 2**-10, "BF16": 2**-7, "F32": 2**-23}[dtype]
    least = {"F16": 2.0**-24, "BF16": 2.0**-133, "F32": 2.0**-149}[dtype]
    found = near.clone()
    for i, number in enumerate(exact.tolist()):
        if not np.isfinite(number) or number == near[i]:
            continue
        unit = max(2.0 ** np.floor(np.log2(abs(number))) * step, least)
        below = np.floor(number / unit) * unit
        above = below + unit
        if number - below == above - number:
            found[i] = below if (below / unit) % 2 == 0 else above
        else:
            found[i] = below if number - below < above - number else above
    return found


def test_what_would_become_infinite_is_refused() -> None:
    with pytest.raises(CheckpointError, match="too large for F16"):
        cast(struct.pack("<f", 70000.0), "F32", "F16")
    assert not is_exact(struct.pack("<f", 70000.0), "F32", "F16")


def test_which_casts_are_exact() -> None:
    assert widens("BF16", "F32")
    assert widens("F16", "F32")
    assert not widens("F16", "BF16")
    assert not widens("F32", "BF16")
    assert is_exact(struct.pack("<f", 1.5), "F32", "BF16")
    assert not is_exact(struct.pack("<f", 1.001), "F32", "BF16")
