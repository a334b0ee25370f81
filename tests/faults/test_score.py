"""The score: what counts as right, and that a run goes on where it was stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks.diagnose_bases import Base, smollm2
from benchmarks.diagnose_run import Diagnose, Diagnosed, Run
from benchmarks.diagnose_verdicts import (
    PAIR,
    RIGHT,
    SINGLE,
    SOUND,
    STORY,
    below_floor,
    right,
    table,
)

from eyas.checkpoint import open_checkpoint, open_target
from eyas.checks import check
from eyas.diagnose.causes import CauseId
from eyas.engines import EngineRef, Launch

COUNTS = {STORY: 1, SINGLE: 0, PAIR: 2, SOUND: 8}


def _outcome(sort: str, kinds: list[str], causes: list[str]) -> dict[str, object]:
    where = {"base": "smollm2", "form": "specforge", "ref": "sglang@0.5.23", "variation": ""}
    time = {"seconds": 2.0, "cpu_seconds": 1.0}
    return {"index": 0, "sort": sort, "kinds": kinds, "causes": causes, **time, **where}


def test_every_right_diagnosis_is_a_cause_that_eyas_has() -> None:
    assert {cause for causes in RIGHT.values() for cause in causes} <= {str(c) for c in CauseId}


def test_one_fault_must_be_first_and_two_among_the_first_two() -> None:
    assert right(["map-missing"], ["map-lost", "rope"])
    assert not right(["map-missing"], ["rope", "map-lost"])
    both = ["norms-exchanged", "map-missing"]
    assert right(both, ["map-lost", "norms-swapped", "rope"])
    assert not right(both, ["map-lost", "rope", "norms-swapped"])
    assert not right(both, ["map-lost"])


def test_of_a_sound_drafter_nothing_is_blamed() -> None:
    assert right([], [])
    assert right([], ["none"])
    assert not right([], ["weak-drafter"])


def test_a_score_below_its_floor_is_named() -> None:
    met = _outcome(SINGLE, ["map-missing"], ["map-lost"])
    missed = _outcome(SINGLE, ["map-missing"], ["rope"])

    assert below_floor([met] * 19 + [missed]) == []
    assert below_floor([met] * 18 + [missed] * 2) == [SINGLE]
    blamed = _outcome(SOUND, [], ["rope"])
    assert below_floor([met, blamed]) == [SOUND]
    text = table([met, missed, blamed])
    assert "map-lost 1, rope 1 ✗" in text
    assert "2 missed" in text


class _StoppedError(Exception):
    pass


class _Oracle:
    """Answers as a diagnosis would, and stops after so many."""

    def __init__(self, stops: int) -> None:
        self.asked: list[str] = []
        self._stops = stops

    def __call__(self, base: Base, path: Path, ref: str, launch: Sequence[str]) -> Diagnosed:
        if len(self.asked) == self._stops:
            raise _StoppedError
        self.asked.append(path.name)
        return Diagnosed(causes=("none",), said="")


@pytest.fixture(scope="module")
def base() -> Base:
    return smollm2()


def _run(seed: int, base: Base, folder: Path, diagnose: Diagnose) -> Run:
    bases = {base.name: base}
    return Run(seed=seed, folder=folder, forms=folder / "forms", bases=bases, diagnose=diagnose)


def test_a_run_is_resumed_and_leaves_labels_alone(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "_costs", lambda *_: {})
    first, second = _Oracle(4), _Oracle(99)

    def go_on(oracle: _Oracle) -> Run:
        run = Run(
            seed=7,
            folder=tmp_path,
            forms=tmp_path / "forms",
            bases={"smollm2": base},
            diagnose=oracle,
        )
        done = {outcome["index"] for outcome in run.outcomes()}
        for item in run.items(COUNTS):
            if item.index not in done:
                run.score(item, keep=False)
        return run

    with pytest.raises(_StoppedError):
        go_on(first)
    run = go_on(second)

    outcomes = run.outcomes()
    assert [outcome["index"] for outcome in outcomes] == list(range(11))
    assert len(first.asked) + len(second.asked) == 11
    assert len({*first.asked, *second.asked}) == 11
    assert below_floor(outcomes) == [STORY, PAIR]
    labels = [json.loads(file.read_text()) for file in (tmp_path / "labels").iterdir()]
    assert {label["directory"].rpartition("/")[0] for label in labels} == {
        str(tmp_path / "drafters")
    }


def test_sound_drafters_are_sound_by_the_check(base: Base, tmp_path: Path) -> None:
    """Every variation lands whole: no error for the engine that it is served by."""
    facts = open_target(base.target)
    seen = set()

    def look(base: Base, path: Path, ref: str, launch: Sequence[str]) -> Diagnosed:
        report = check(
            open_checkpoint(path),
            (EngineRef.parse(ref),),
            target=facts,
            launch=Launch.parse(launch),
        )
        errors = [finding.code for finding in report.findings if str(finding.severity) == "error"]
        return Diagnosed(causes=tuple(errors), said="")

    run = Run(
        seed=11, folder=tmp_path, forms=tmp_path / "forms", bases={"smollm2": base}, diagnose=look
    )
    for item in run.items({STORY: 0, SINGLE: 0, PAIR: 0, SOUND: 24}):
        outcome = run.score(item, keep=False)
        assert outcome["causes"] == [], outcome
        seen.add((outcome["variation"], outcome["form"], outcome["ref"]))
    assert len(seen) >= 16
