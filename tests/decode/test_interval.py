from __future__ import annotations

import numpy as np
import pytest

from eyas.decode.acceptance import Acceptance, informative
from eyas.decode.interval import tau_by_category


def record(accepted: int, rounds: int) -> Acceptance:
    return Acceptance(steps=3, rounds=rounds, accepted_at=(accepted, 0, 0))


def test_the_value_is_over_rounds_and_the_macro_mean_over_categories() -> None:
    estimates, macro = tau_by_category(
        {"a": [record(10, 10), record(0, 30)], "b": [record(5, 10), record(5, 10)]}, seed=0
    )
    assert estimates["a"].value == 1.25
    assert estimates["b"].value == 1.5
    assert macro is not None
    assert macro.value == 1.375
    # every resample of two equal prompts is the same
    assert estimates["b"].interval is not None
    assert (estimates["b"].interval.low, estimates["b"].interval.high) == (1.5, 1.5)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    covered = 0
    for seed in range(200):
        records = [record(int(n), 40) for n in random.binomial(40, 0.4, size=30)]
        estimates, _ = tau_by_category({"a": records}, seed=seed)
        interval = estimates["a"].interval
        assert interval is not None
        covered += interval.low <= 1.4 <= interval.high
    assert 0.88 <= covered / 200 <= 0.99


def test_a_seed_and_a_name_fix_the_draws() -> None:
    records = {name: [record(n, 10) for n in (1, 4, 7)] for name in ("a", "b")}
    together, _ = tau_by_category(records, seed=3)
    alone, _ = tau_by_category({"b": records["b"]}, seed=3)
    assert together["b"] == alone["b"]
    other, _ = tau_by_category({"b": records["b"] * 5}, seed=4)
    assert other["b"].interval != alone["b"].interval


def test_prompts_without_a_round_say_nothing() -> None:
    records = informative([("a", record(0, 0)), ("b", record(2, 4)), ("b", None), ("c", None)])
    estimates, macro = tau_by_category(records, seed=0)
    assert set(estimates) == {"b"}
    assert macro is not None
    assert macro.value == 1.5
    # one prompt leaves nothing to resample
    assert macro.interval is None
    assert tau_by_category(informative([("a", record(0, 0))]), seed=0) == ({}, None)


def test_one_lone_prompt_takes_the_interval_of_the_mean_away() -> None:
    many = [record(n, 10) for n in (1, 2, 3)]
    _, macro = tau_by_category({"a": many, "b": many[:1]}, seed=0)
    assert macro is not None
    assert macro.interval is None
    assert macro.value == pytest.approx((1.2 + 1.1) / 2)
