"""Trials with an oracle for a drafter (a mock): resumption, refusals, ranges, text and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.decode.oracle import Oracle, tiny_target

from eyas.checks.render.style import PLAIN
from eyas.decode.arms import AS_TRAINED, Arm, Build
from eyas.decode.evaluation import Evaluation
from eyas.decode.evaluation_json import as_json
from eyas.decode.evaluation_text import RANGE_NOTE, text
from eyas.decode.greedy import generate
from eyas.decode.outcomes import Outcomes
from eyas.decode.trial import NamedPrompt, Trial
from eyas.engines import EngineRef
from eyas.errors import UnsupportedError, UsageError
from eyas.model.served import Fill

STEPS, MAX_NEW = 3, 20
PROMPTS = [
    NamedPrompt(id=str(n), category="odd" if n % 2 else "even", ids=(n, 3, 2 * n, 12, 5))
    for n in range(1, 7)
]
SETTINGS: dict[str, str | int] = {"drafter": "abc", "steps": STEPS}
OLD = EngineRef.parse("sglang@0.5.10.post1")


class Drafters:
    """Oracles for every prompt in turn, and how many were asked for."""

    def __init__(self, error: float) -> None:
        self.error, self.built = error, 0

    def __call__(self) -> Any:
        self.built += 1
        return AnyPrompt(self.error)


class AnyPrompt(Oracle):
    """An oracle that finds out which prompt it drafts for from the first ids it is fed."""

    def __init__(self, error: float) -> None:
        super().__init__(text=(), error=error)

    def step(self, ids_BT: Any, hidden_BTH: Any, cache: Any) -> Any:
        if not cache.fed:
            second = tuple(ids_BT[0, :4].tolist())
            prompt = next(p for p in PROMPTS if p.ids[1:] == second)
            answer = generate(tiny_target(), prompt.ids, max_new=MAX_NEW + 8).tokens
            self.text = prompt.ids + answer
        return super().step(ids_BT, hidden_BTH, cache)


def arm(
    label: str,
    *drafters: Callable[[], Any],
    engine: EngineRef | None = None,
    why: str | None = None,
) -> Arm:
    fills = list(Fill)[: len(drafters)] if len(drafters) > 1 else [None]
    pairs = zip(fills, drafters, strict=False)
    builds = tuple(Build(fill=fill, drafter=make) for fill, make in pairs)
    return Arm(label=label, engine=engine, builds=builds, refusal=why)


def run(
    outcomes: Outcomes,
    *arms: Arm,
    baseline: bool = False,
    prompts: Sequence[NamedPrompt] = tuple(PROMPTS),
) -> Evaluation:
    trial = Trial(
        target=tiny_target(),
        prompts=prompts,
        steps=STEPS,
        max_new=MAX_NEW,
        outcomes=outcomes,
        watch=lambda _what, _total: lambda: None,
    )
    return trial.run(arms, baseline=baseline, seed=0)


def test_a_trial_in_text_and_json() -> None:
    evaluation = run(
        Outcomes(None, SETTINGS),
        arm(AS_TRAINED, Drafters(0.3)),
        arm("lost", Drafters(1.0), Drafters(0.9), engine=OLD),
        arm("refused", engine=OLD, why="does not start: no model_type"),
        baseline=True,
    )
    shown = text(evaluation, "a heading", PLAIN)
    assert shown.startswith("a heading\n")
    assert "odd         3" in shown
    assert "macro mean  6" in shown
    assert "6 of 6 answers are the target's own" in shown
    assert "refused: does not start: no model_type" in shown
    assert RANGE_NOTE in shown
    assert "lost would log: accept len 1.00 to 1." in shown
    assert "draft 3  as trained" in shown
    document = json.loads(as_json(evaluation, {"draft": "d"}))
    trained, lost, refused = document["arms"]
    (sound,) = trained["runs"]
    assert sound["tau"] == pytest.approx(1 + sound["accepted"] / sound["rounds"])
    assert sound["tau"] > 2
    assert sound["same_answers"] == 6
    assert sound["round_cost"] > 0
    assert sound["macro_tau"]["interval"][0] < sound["macro_tau"]["value"]
    assert len(sound["cumulative"]) == STEPS
    assert sound["tokens"] == 6 * MAX_NEW
    said = sound["reported_by"]["vllm@0.33.0"]
    assert said["log line :: Mean acceptance length"] == pytest.approx(sound["tau"])
    assert [r["fill"] for r in lost["runs"]] == ["zeros", "normal"]
    assert lost["runs"][0]["tau"] == 1.0
    dead = lost["runs"][0]["reported_by"][str(OLD)]
    assert dead["log line :: accept rate"] == 0.25
    assert lost["runs"][0]["round_cost"] is None
    assert refused["runs"] == []


def test_without_a_baseline_nothing_is_said_of_r() -> None:
    evaluation = run(Outcomes(None, SETTINGS), arm(AS_TRAINED, Drafters(0.5)))
    assert "not measured without --baseline" in text(evaluation, "h", PLAIN)
    assert json.loads(as_json(evaluation, {}))["arms"][0]["runs"][0]["round_cost"] is None


def test_a_second_run_goes_on_where_the_first_was_killed(tmp_path: Path) -> None:
    file = tmp_path / "outcomes.jsonl"
    first = run(Outcomes(file, SETTINGS), arm(AS_TRAINED, Drafters(0.3)), baseline=True)
    lines = file.read_bytes().split(b"\n")
    assert len(lines) == 1 + 2 * len(PROMPTS) + 1
    # killed in the middle of the ninth line
    file.write_bytes(b"\n".join(lines[:8]) + b"\n" + lines[8][:40])
    drafters = Drafters(0.3)
    second = run(Outcomes(file, SETTINGS), arm(AS_TRAINED, drafters), baseline=True)
    assert drafters.built == 1
    assert len(file.read_bytes().split(b"\n")) == len(lines)
    assert [o.generation.tokens for o in second.arms[0].runs[0].outcomes] == [
        o.generation.tokens for o in first.arms[0].runs[0].outcomes
    ]
    nothing_left = Drafters(0.3)
    third = run(Outcomes(file, SETTINGS), arm(AS_TRAINED, nothing_left), baseline=True)
    assert nothing_left.built == 0
    assert third == second


def test_the_same_prompt_under_another_name_counts_under_that_name(tmp_path: Path) -> None:
    outcomes = Outcomes(tmp_path / "outcomes.jsonl", SETTINGS)
    run(outcomes, arm(AS_TRAINED, Drafters(0.3)))
    again = replace(PROMPTS[0], id="again", category="other")
    renamed = [replace(p, id=f"new {p.id}", category="new") for p in PROMPTS[:2]]
    nothing_left = Drafters(0.3)
    evaluation = run(outcomes, arm(AS_TRAINED, nothing_left), prompts=[*renamed, again])
    assert nothing_left.built == 0
    assert [o.id for o in evaluation.arms[0].runs[0].outcomes] == ["new 1", "new 2", "again"]
    assert evaluation.prompts_by_category == {"new": 2, "other": 1}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"schema_version": 1, "settings": {"drafter": "abc", "steps": 5}}\n', "steps 5"),
        ('{"id": 1, "category": "a", "messages": []}\n', "was not made by eyas eval"),
        ("not json, and no line end", "was not made by eyas eval"),
        ('{"schema_version": 1, "settings": {"drafter": "abc", "steps": 3}}\n{}\n', "line 2"),
    ],
)
def test_a_file_of_something_else_is_refused_and_left_alone(
    tmp_path: Path, content: str, said: str
) -> None:
    file = tmp_path / "outcomes.jsonl"
    file.write_text(content)
    with pytest.raises(UsageError, match=said):
        Outcomes(file, SETTINGS)
    assert file.read_text() == content


@pytest.mark.parametrize("begun", [False, True])
def test_a_file_appears_with_its_first_outcome(tmp_path: Path, begun: bool) -> None:
    file = tmp_path / "outcomes.jsonl"
    if begun:
        file.touch()
    Outcomes(file, {"target": "mistyped"})  # a run that ends before its first answer
    assert [found.read_bytes() for found in tmp_path.iterdir()] == [b""] * begun
    run(Outcomes(file, SETTINGS), arm(AS_TRAINED, Drafters(0.3)))
    lines = file.read_text().splitlines()
    assert json.loads(lines[0])["settings"] == SETTINGS
    assert len(lines) == 1 + len(PROMPTS)
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_hold_outcomes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        Outcomes(tmp_path / "nowhere" / "o.jsonl", SETTINGS)
    with pytest.raises(UsageError, match="is no file"):
        Outcomes(tmp_path, SETTINGS)


def test_what_cannot_be_run_as_served_is_a_row_that_says_so() -> None:
    def impossible() -> Any:
        raise UnsupportedError("a cut tensor cannot be run yet")

    evaluation = run(
        Outcomes(None, SETTINGS),
        arm(AS_TRAINED, Drafters(0.3)),
        arm("served", impossible, engine=OLD),
    )
    assert "served: cannot be run: a cut tensor" in text(evaluation, "h", PLAIN)
    with pytest.raises(UnsupportedError):
        run(Outcomes(None, SETTINGS), arm(AS_TRAINED, impossible))
