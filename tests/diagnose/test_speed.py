"""An observed speed is tau over R."""

from __future__ import annotations

import pytest

from eyas.diagnose.speed import decompose
from eyas.errors import UsageError


def test_the_story_in_numbers() -> None:
    speed = decompose(25, 90, 1.0, 4)
    assert speed.speedup == pytest.approx(25 / 90)
    assert speed.round_cost == pytest.approx(3.6)
    assert speed.costly
    assert "tau 1.00 explains 47 to 57 tok/s" in speed.sentence
    assert "2.1 times what it should" in speed.sentence


def test_a_usual_round_is_not_blamed() -> None:
    speed = decompose(150, 90, 2.6, 3)
    assert not speed.costly
    assert "look at" not in speed.sentence


@pytest.mark.parametrize(("drafted", "plain", "tau"), [(0, 90, 2), (25, -1, 2), (25, 90, 0.5)])
def test_what_cannot_be_is_refused(drafted: float, plain: float, tau: float) -> None:
    with pytest.raises(UsageError, match="cannot be"):
        decompose(drafted, plain, tau, 3)
