"""What engines would report: by hand, and against what real servers did report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eyas.engines import EngineRef
from eyas.engines.metric import Metric, Tally
from eyas.engines.reported import USUAL, Reported, reported, text_of
from eyas.errors import EngineError

DEAD = Tally(steps=4, rounds=50, accepted_at=(0, 0, 0, 0), requests=1, delivered=51)
# rounds that accepted 0, 1, 3, 3 drafts; the answer's end cut one token off
MIXED = Tally(steps=3, rounds=4, accepted_at=(3, 2, 2), requests=1, delivered=11)


def said(engine: str, tally: Tally) -> Reported:
    return reported(tally, [EngineRef.parse(engine)])[0]


def value(engine: str, tally: Tally, name: str) -> Any:
    metric = said(engine, tally).named(name)
    return "no such name" if metric is None else metric.value


def test_a_tally_knows_its_histogram() -> None:
    assert MIXED.histogram == (1, 1, 0, 2)
    assert (MIXED.accepted, MIXED.drafted) == (7, 12)


@pytest.mark.parametrize(
    ("engine", "length", "rate"),
    [
        ("sglang@0.5.8", 1.0, 0.2),
        ("sglang@0.5.10.post1", 1.0, 0.2),
        ("sglang@0.5.11", 1.0, 0.0),
        ("sglang@0.5.23", 1.0, 0.0),
    ],
)
def test_a_dead_drafter_on_sglang(engine: str, length: float, rate: float) -> None:
    assert value(engine, DEAD, "accept len") == length
    assert value(engine, DEAD, "accept rate") == rate
    assert value(engine, DEAD, "sglang:spec_accept_rate") == rate
    # a request counts the token of its prompt's forward pass
    assert value(engine, DEAD, "spec_accept_length") == 51 / 50
    assert value(engine, DEAD, "spec_accept_rate") == 0.0


def test_the_same_rounds_by_every_rule() -> None:
    assert value("sglang@0.5.10.post1", MIXED, "accept len") == 10 / 4
    assert value("sglang@0.5.10.post1", MIXED, "accept rate") == 10 / 16
    assert value("sglang@0.5.23", MIXED, "accept len") == 11 / 4
    assert value("sglang@0.5.23", MIXED, "accept rate") == 7 / 12
    assert value("sglang@0.5.23", MIXED, "spec_accept_length") == 11 / 4
    assert value("vllm@0.33.0", MIXED, "Mean acceptance length") == 11 / 4
    assert value("vllm@0.33.0", MIXED, "Per-position acceptance rate") == (0.75, 0.5, 0.5)
    assert value("vllm@0.33.0", MIXED, "Avg Draft acceptance rate (%)") == 700 / 12


@pytest.mark.parametrize(
    ("version", "accepted", "histogram"),
    [
        ("0.5.8", {"spec_accept_token_num"}, set()),
        ("0.5.9", {"spec_accept_token_num"}, {"spec_accept_histogram"}),
        ("0.5.11", {"spec_accepted_drafts"}, {"spec_accept_histogram"}),
        (
            "0.5.20",
            {"spec_accepted_drafts", "spec_num_correct_drafts"},
            {"spec_accept_histogram", "spec_correct_drafts_histogram"},
        ),
        ("0.5.21", {"spec_num_correct_drafts"}, {"spec_correct_drafts_histogram"}),
    ],
)
def test_the_names_of_a_request_by_version(
    version: str, accepted: set[str], histogram: set[str]
) -> None:
    metrics = said(f"sglang@{version}", MIXED).metrics
    names = {m.name for m in metrics if m.where == "meta_info"}
    every = {"spec_accept_token_num", "spec_accepted_drafts", "spec_num_correct_drafts"}
    assert names & every == accepted
    assert {name for name in names if name.endswith("histogram")} == histogram


def test_without_a_round_nothing_is_said_of_the_drafter() -> None:
    none = Tally(steps=3, rounds=0, accepted_at=(0, 0, 0), requests=1, delivered=1)
    assert value("sglang@0.5.23", none, "accept len") is None
    assert value("sglang@0.5.23", none, "sglang:spec_accept_length") == 0.0
    assert value("sglang@0.5.23", none, "spec_verify_ct") is None
    # vLLM's request does say something, and the caution says what it is worth
    metric = said("vllm@0.33.0", none).named("mean_acceptance_length")
    assert metric is not None
    assert metric.value == 1.0
    assert metric.caution is not None
    assert "not a dead drafter" in metric.caution


def test_every_number_cites_a_line() -> None:
    for ref in USUAL:
        for metric in said(str(ref), MIXED).metrics:
            assert metric.claim.project == ref.name
            assert metric.claim.lines


def test_as_text() -> None:
    text = text_of(reported(DEAD))
    assert "sglang@0.5.10.post1 would say\n  log line: accept len 1.000, accept rate 0.200" in text
    assert "sglang@0.5.23 would say\n  log line: accept len 1.000, accept rate 0.000" in text
    assert "vllm:spec_decode_num_accepted_tokens_per_pos_total [0, 0, 0, 0]" in text
    assert max(map(len, text.splitlines())) <= 100


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(EngineError, match=r"0\.4\.0"):
        said("sglang@0.4.0", DEAD)


# --- recorded servers -----------------------------------------------------------------------------

RECORDED = [
    *(
        f"sglang-{version}/{scenario}"
        for version in ("0.5.8", "0.5.10.post1", "0.5.11", "0.5.23")
        for scenario in ("eagle3-good", "eagle3-dead", "eagle-algorithm")
    ),
    "sglang-0.5.23/smollm2-eagle3",
    "sglang-0.5.23/smollm2-eagle-algorithm",
    "vllm-0.32.0/eagle3-good",
    "vllm-0.32.0/eagle-method",
    "vllm-0.32.0/eagle3-no-layer",
    "vllm-0.32.0/eagle3-good-per-request-detailed",
]


@pytest.fixture(params=RECORDED)
def recorded(request: pytest.FixtureRequest, shared: Path) -> tuple[str, dict[str, Any]]:
    """An engine as typed, and the truth of one recorded run of it."""
    folder = shared / "cases" / "exchanges" / request.param
    if not folder.is_dir():
        pytest.skip(f"no recorded exchanges at {folder}")
    engine = request.param.partition("/")[0].replace("-", "@", 1)
    return engine, json.loads((folder / "truth.json").read_text(encoding="utf-8"))


def rounds_of(exchange: dict[str, Any]) -> list[int]:
    """Accepted drafts round by round; a run of zeros is recorded as "23 x [0]"."""
    listed = exchange["rounds_list"]
    if isinstance(listed, str):
        count, _, single = listed.partition(" x ")
        return json.loads(single) * int(count)
    return list(listed)


def tally_of(steps: int, accepted: list[int], requests: int, delivered: int) -> Tally:
    at = tuple(sum(n > k for n in accepted) for k in range(steps))
    return Tally(
        steps=steps,
        rounds=len(accepted),
        accepted_at=at,
        requests=requests,
        delivered=delivered,
    )


def test_every_request_is_told_as_the_server_told_it(
    recorded: tuple[str, dict[str, Any]],
) -> None:
    engine, truth = recorded
    compared = 0
    for name, exchange in truth["exchanges"].items():
        for told in exchange["reported"]:
            if exchange["requests"] != 1:
                continue  # rounds are recorded for the requests together
            where = "meta_info" if engine.startswith("sglang") else "metrics.speculative_decoding"
            if where not in told["where"]:
                continue
            tally = tally_of(3, rounds_of(exchange), 1, exchange["completion_tokens"])
            ours: dict[str, Metric] = {
                m.name: m for m in said(engine, tally).metrics if where in m.where
            }
            for key, reported_value in told.items():
                if key == "where" or key.startswith("per_step") or key == "num_spec_tokens":
                    continue
                mine = ours[key].value
                mine = list(mine) if isinstance(mine, tuple) else mine
                assert mine == pytest.approx(reported_value), (name, key)
                compared += 1
    if engine.startswith("sglang"):
        assert compared >= 15


def test_the_counters_and_the_lifetime_length_are_the_servers(
    recorded: tuple[str, dict[str, Any]],
) -> None:
    engine, truth = recorded
    exchanges = truth["exchanges"].values()
    accepted = [n for exchange in exchanges for n in rounds_of(exchange)]
    assert len(accepted) == truth["total_over_exchanges"]["rounds"]
    assert sum(accepted) == truth["total_over_exchanges"]["accepted"]
    delivered = sum(exchange["completion_tokens"] for exchange in exchanges)
    tally = tally_of(3, accepted, sum(e["requests"] for e in exchanges), delivered)
    after, before = truth["prometheus_after"], truth["prometheus_before"]
    if engine.startswith("vllm"):
        positions = value(engine, tally, "vllm:spec_decode_num_accepted_tokens_per_pos_total")
        for position, count in enumerate(positions):
            series = f"vllm:spec_decode_num_accepted_tokens_per_pos_total[{position}]"
            assert count == after[series] - before[series]
        for name in ("num_drafts", "num_draft_tokens", "num_accepted_tokens"):
            series = f"vllm:spec_decode_{name}_total"
            assert value(engine, tally, series) == after[series] - before[series]
        return
    counter = "sglang:spec_verify_calls_total"
    if counter in after:
        assert value(engine, tally, counter) == after[counter] - before[counter]
    else:
        assert value(engine, tally, counter) == "no such name"
    if truth["total_over_exchanges"]["accepted"] == 0:
        assert value(engine, tally, "sglang:spec_accept_length") == 1.0
        rate = value(engine, tally, "sglang:spec_accept_rate")
        assert rate == after["sglang:spec_accept_rate"]
        assert value(engine, tally, "avg_spec_accept_length") == 1.0


def test_the_lifetime_length_leaves_out_what_was_cut_where_the_server_does(shared: Path) -> None:
    # recorded: a warm-up of 7 dead rounds, then 70 rounds, the last of them in no closed window
    for version, expected in (("0.5.10.post1", 218 / 76), ("0.5.23", 230 / 76)):
        path = shared / "cases" / "exchanges" / f"sglang-{version}" / "eagle3-good" / "truth.json"
        truth = json.loads(path.read_text(encoding="utf-8"))
        exchanges = list(truth["exchanges"].values())
        accepted = [0] * 7 + [n for exchange in exchanges for n in rounds_of(exchange)]
        last_delivered = accepted.pop()  # of the bonus and 3 drafts, the answer's end cut one
        delivered = 8 + sum(e["completion_tokens"] for e in exchanges) - last_delivered
        requests = 1 + sum(e["requests"] for e in exchanges)
        tally = tally_of(3, accepted, requests, delivered)
        ours = value(f"sglang@{version}", tally, "avg_spec_accept_length")
        assert ours == pytest.approx(expected)
        assert ours == pytest.approx(truth["server_info_after.avg_spec_accept_length"])
