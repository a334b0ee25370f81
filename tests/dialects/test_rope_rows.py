"""The order of q/k rows, against llama.cpp's own formula and against the rotation itself."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eyas.dialects.rope_rows import from_neighbours, to_neighbours
from eyas.errors import CheckpointError
from eyas.model.rope import rotate, rotate_pairs


@given(heads=st.integers(1, 9), half=st.integers(1, 70))
def test_the_order_is_that_of_a_reshaped_and_swapped_matrix(heads: int, half: int) -> None:
    rows = np.arange(heads * 2 * half)
    swapped = rows.reshape(heads, 2, half).swapaxes(1, 2).reshape(-1)
    assert to_neighbours(heads, 2 * half) == swapped.tolist()


@given(heads=st.integers(1, 9), half=st.integers(1, 70))
def test_the_way_back_undoes_it(heads: int, half: int) -> None:
    forth, back = to_neighbours(heads, 2 * half), from_neighbours(heads, 2 * half)
    assert [forth[i] for i in back] == list(range(heads * 2 * half))


def test_neighbours_turn_as_the_halves_did() -> None:
    heads, width = 3, 8
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(heads, width, generator=generator, dtype=torch.float64)
    angles = torch.randn(width // 2, generator=generator, dtype=torch.float64)
    cos, sin = (torch.cat([f(angles)] * 2) for f in (torch.cos, torch.sin))
    order = to_neighbours(heads, width)
    turned = rotate_pairs(q.flatten()[order].view(heads, width), cos, sin)
    expected = rotate(q, cos, sin).flatten()[order].view(heads, width)
    assert torch.equal(turned, expected)


def test_an_odd_head_is_refused() -> None:
    with pytest.raises(CheckpointError, match="heads of 7 channels"):
        to_neighbours(2, 7)
