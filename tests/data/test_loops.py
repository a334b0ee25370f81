from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eyas.data.loops import looped_from


@given(
    start=st.lists(st.integers(0, 999), max_size=20),
    round_=st.lists(st.integers(1000, 1999), min_size=1, max_size=30, unique=True),
    repeats=st.integers(4, 8),
)
def test_a_loop_is_cut_to_a_few_rounds(start: list[int], round_: list[int], repeats: int) -> None:
    ids = start + round_ * max(repeats, 24 // len(round_) + 1)
    cut = looped_from(ids)
    assert cut is not None
    assert len(start) + 2 * len(round_) <= cut <= len(start) + 2 * len(round_) + 12
    assert cut < len(ids)


@given(st.lists(st.integers(0, 10_000), max_size=80, unique=True))
def test_text_that_does_not_repeat_is_left_alone(ids: list[int]) -> None:
    assert looped_from(ids) is None


def test_saying_something_twice_is_no_loop() -> None:
    assert looped_from([*range(30), *range(30)]) is None
    assert looped_from([5] * 20) is None
