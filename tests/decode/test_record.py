from __future__ import annotations

import pytest

from eyas.decode.acceptance import Acceptance
from eyas.decode.generation import Generation
from eyas.decode.record import Record


def answer(tokens: int, seconds: float, accepted: list[int] | None) -> Generation:
    return Generation(
        tokens=tuple(range(tokens)),
        seconds=seconds,
        gaps=None,
        acceptance=None if accepted is None else Acceptance.of(3, accepted),
    )


# 10 tokens after the prompt's own: 4 rounds accepted 6, of which the answer's end cut none
DRAFTED = answer(11, 2.0, [0, 3, 1, 2])
PLAIN = answer(11, 2.5, None)


def test_a_record_with_a_baseline() -> None:
    record = Record.of([DRAFTED], [PLAIN])
    assert record.acceptance is not None
    assert record.acceptance.tau == 2.5
    assert record.pace.tokens_per_second == 5.0
    # a round takes 0.5 s, a plain step 0.25 s
    assert record.round_cost == 2.0
    assert record.speedup == 1.25
    assert record.speedup == record.acceptance.tau / record.round_cost
    assert any("R 2.00" in line and "1.25x" in line for line in record.lines())


def test_without_a_baseline_the_round_cost_is_unknown() -> None:
    record = Record.of([DRAFTED])
    assert record.round_cost is None
    assert record.speedup is None
    assert any("not measured" in line for line in record.lines())


def test_without_a_drafter_there_is_no_tau() -> None:
    record = Record.of([PLAIN])
    assert record.acceptance is None
    assert record.tally is None
    assert record.lines() == ("11 tokens in 2.50 s, 4.0 tokens/s without the prompt's own forward",)


def test_records_of_several_answers_add_up() -> None:
    record = Record.of([DRAFTED, answer(5, 1.0, [3])])
    assert record.tally is not None
    assert record.tally.requests == 2
    assert record.tally.delivered == 16
    assert record.tally.accepted_at == (4, 3, 2)
    assert record.pace.seconds_per_forward == pytest.approx(3 / 5)


def test_an_answer_of_one_token_has_no_round_and_no_rate() -> None:
    record = Record.of([answer(1, 0.0, [])], [answer(1, 0.0, None)])
    assert record.pace.tokens_per_second is None
    assert record.round_cost is None
    assert any("no round was drafted" in line for line in record.lines())
