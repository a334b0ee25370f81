"""One rule for when drafted answers are the target's own."""

from __future__ import annotations

import pytest

from eyas.decode.comparison import RARE, Comparison
from eyas.decode.generation import NEAR_TIE, Generation, divergence


def answer(tokens: tuple[int, ...], gap: float = 1.0) -> Generation:
    return Generation(tokens=tokens, seconds=0.0, gaps=(gap,) * len(tokens), acceptance=None)


@pytest.mark.parametrize("drafted", [(1, 2), (1, 2, 3, 4)])
def test_an_answer_of_another_length_is_another_answer(drafted: tuple[int, ...]) -> None:
    found = divergence(answer((1, 2, 3), gap=0.0), answer(drafted))
    assert found is not None
    assert found.position == min(3, len(drafted))
    assert not found.numeric


def compared(*, answers: int, near_ties: int, gap: float = NEAR_TIE / 2) -> Comparison:
    plain = [answer(tuple(range(100)), gap)] * answers
    other = answer((*range(99), 7), gap)
    return Comparison.of(plain, [other] * near_ties + plain[near_ties:])


def test_one_near_tie_in_ten_thousand_positions_is_rounding() -> None:
    enough = RARE // 100
    rare = compared(answers=enough, near_ties=1)
    assert rare.exact
    assert rare.equal == enough - 1  # what is excused is not called equal
    assert rare.lines() == (
        "answer 1 departs from the target's own at token 100, "
        "where the two highest logits are 5e-05 apart",
    )
    assert not compared(answers=enough - 1, near_ties=1).exact
    assert not compared(answers=enough, near_ties=2).exact
    assert compared(answers=2 * enough, near_ties=2).exact


def test_a_clear_choice_is_never_rounding() -> None:
    assert not compared(answers=RARE, near_ties=1, gap=NEAR_TIE).exact
    same = compared(answers=2, near_ties=0)
    assert same.exact
    assert (same.equal, same.lines()) == (2, ())
