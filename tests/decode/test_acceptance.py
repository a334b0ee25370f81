from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.decode.acceptance import Acceptance, informative, macro_mean, tau_of
from eyas.errors import UsageError


def test_tau_counts_the_bonus_token() -> None:
    record = Acceptance.of(3, [0, 1, 3, 0])
    assert record.rounds == 4
    assert record.accepted_at == (2, 1, 1)
    assert record.tau == 2.0
    assert record.cumulative == (0.5, 0.25, 0.25)
    assert record.conditional == (0.5, 0.5, 1.0)


def test_a_dead_drafter_reads_one_and_no_round_reads_nothing() -> None:
    assert Acceptance.of(3, [0] * 20).tau == 1.0
    assert Acceptance.of(3, []).tau is None
    assert Acceptance.of(3, [0, 0]).conditional == (0.0, None, None)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=50))
def test_tau_is_one_plus_the_cumulative_rates_and_their_products(accepted: list[int]) -> None:
    record = Acceptance.of(5, accepted)
    assert record.tau == pytest.approx(1 + sum(accepted) / len(accepted))
    assert record.tau == pytest.approx(1 + sum(record.cumulative))
    product, total = 1.0, 1.0
    for rate in record.conditional:
        product *= rate or 0.0
        total += product
    assert record.tau == pytest.approx(total)


@given(st.lists(st.integers(0, 3), max_size=20), st.lists(st.integers(0, 3), max_size=20))
def test_records_add_up(first: list[int], second: list[int]) -> None:
    both = Acceptance.of(3, first) + Acceptance.of(3, second)
    assert both == Acceptance.of(3, first + second)


def test_records_of_different_chains_do_not_add() -> None:
    with pytest.raises(UsageError, match="cannot be added"):
        _ = Acceptance.of(3, [1]) + Acceptance.of(2, [1])


def test_macro_mean_weighs_categories_alike() -> None:
    assert macro_mean([1.0, 2.0]) == 1.5
    with pytest.raises(UsageError):
        macro_mean([])


def test_tau_of_a_category_is_over_its_rounds_not_its_answers() -> None:
    short, long = Acceptance.of(3, [3]), Acceptance.of(3, [0] * 9)
    records = informative([("a", short), ("b", None), ("a", long), ("c", Acceptance.of(3, []))])
    assert records == {"a": [short, long]}
    assert tau_of(records["a"]) == 1.3
    with pytest.raises(UsageError, match="no round"):
        tau_of([Acceptance.of(3, [])])
