from __future__ import annotations

import pytest

from eyas.errors import TargetError
from eyas.spec import DefaultBoundaries, boundaries_of


@pytest.mark.parametrize(
    ("layers", "expected"),
    [(30, (2, 15, 27)), (32, (2, 16, 29)), (61, (2, 30, 58)), (12, (2, 6, 9))],
)
def test_the_default_is_the_same_three_states_everywhere(
    layers: int, expected: tuple[int, int, int]
) -> None:
    assert DefaultBoundaries().of(layers) == expected
    # SpecForge states them as "after layer" ids: 1, L//2 - 1, L - 4
    assert tuple(k - 1 for k in expected) == (1, layers // 2 - 1, layers - 4)


@pytest.mark.parametrize("layers", [1, 3, 5, 6])
def test_a_target_too_shallow_for_the_default_is_refused(layers: int) -> None:
    with pytest.raises(TargetError, match="not three different states"):
        DefaultBoundaries().of(layers)


def test_declared_boundaries_run_from_the_embeddings_to_the_last_layers_output() -> None:
    assert boundaries_of((0, 15, 30), 30) == (0, 15, 30)
    assert boundaries_of(DefaultBoundaries(), 30) == (2, 15, 27)
    for outside in (-1, 31):
        with pytest.raises(TargetError, match=f"boundary {outside}"):
            boundaries_of((2, outside), 30)
