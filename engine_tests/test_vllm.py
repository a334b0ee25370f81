"""The drafter that was trained here in real vLLM, in each dialect that vLLM takes.

Nothing is left to chance there, so eyas's and vLLM's rounds are the same, but for near-ties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from engine_tests.conftest import Note, Serve
from engine_tests.prediction import Predictor, interval_of
from engine_tests.serving import Answered
from engine_tests.states import calls_of, differences
from safetensors.torch import load_file

from eyas.checkpoint import open_checkpoint, open_target
from eyas.convert import convert, parse_goal
from eyas.decode.acceptance import Acceptance
from eyas.decode.answers import Answers, TokenisedPrompt
from eyas.decode.comparison import Comparison
from eyas.decode.generation import Generation
from eyas.engines import EngineRef, Launch
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.probe.environment import Environment

# How each dialect comes about. What a producer of specforge writes has ids that vLLM reads as
# others; converted for vLLM, the same dialect states them where vLLM and SGLang both read them.
GOALS = {
    "speculators": (),
    "specforge": ("specforge", "vllm@0.32.0:v1"),
    "eagle": ("eagle",),
    "angelslim": ("angelslim",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One dialect's files, and what vLLM did with them."""

    dialect: str
    draft: Path
    states: Path
    answered: Answered


@pytest.fixture(scope="module", params=GOALS)
def served(
    request: pytest.FixtureRequest,
    shipped: Path,
    smollm2: Path,
    serve: Serve,
    tmp_path_factory: pytest.TempPathFactory,
) -> Served:
    folder = tmp_path_factory.mktemp(request.param)
    draft = shipped
    for goal in GOALS[request.param]:
        out = folder / goal.partition("@")[0]
        source = open_checkpoint(draft, weights=True)
        convert(source, out, parse_goal(goal), target=open_target(smollm2))
        draft = out
    states = folder / "states.safetensors"
    answered = serve(draft, states=states)
    return Served(dialect=request.param, draft=draft, states=states, answered=answered)


def test_vllm_alone_answers_as_eyas_does(serve: Serve, drafted: Answers) -> None:
    held_equal(serve(None), drafted)


def held_equal(answered: Answered, ours: Answers) -> None:
    """The engine's answers are the target's own by eyas's one rule."""
    assert answered.raised is None, answered.error
    theirs = [
        Generation(tokens=tokens, seconds=0.0, gaps=None, acceptance=None)
        for tokens in answered.tokens
    ]
    assert Comparison.of(ours.generations, theirs).exact


def test_vllm_accepts_what_eyas_says(
    served: Served,
    vllm: Environment,
    predictor: Callable[..., Predictor],
    prompts: list[TokenisedPrompt],
    drafted: Answers,
    row: Note,
) -> None:
    answered = served.answered
    held_equal(answered, drafted)
    ids = [prompt.ids for prompt in prompts]
    ref = EngineRef.parse(f"vllm@{vllm.version}:v1")
    launch = Launch.parse(["method=eagle3"])
    predicted = predictor(ids, answered.tokens).of(ref, open_checkpoint(served.draft), launch)
    assert not predicted.left_to_chance
    (records,) = predicted.runs
    ours, theirs = Acceptance.total(records), answered.counted
    assert theirs is not None
    assert theirs == Acceptance.total(answered.records)  # its counters and its requests' numbers
    assert theirs.rounds >= 500
    interval = interval_of(records)
    same = sum(a == b for a, b in zip(records, answered.records, strict=True))
    assert ours.tau is not None
    assert theirs.tau is not None
    row(
        f"vLLM {vllm.version}",
        served.dialect,
        f"{ours.tau:.4f} [{interval.low:.2f}, {interval.high:.2f}]",
        f"{theirs.tau:.4f}",
        f"{theirs.tau - ours.tau:+.4f}",
        f"{theirs.rounds} rounds; the same rounds in {same} of {len(records)} prompts",
    )
    assert interval.low <= theirs.tau <= interval.high
    assert abs(theirs.tau / ours.tau - 1) <= 0.05
    # as served is as trained: what eyas's own decoding with the drafter counts
    assert abs(ours.tau / tau_of_all(drafted) - 1) <= 0.005


def tau_of_all(answers: Answers) -> float:
    tau = answers.acceptance.tau
    assert tau is not None
    return tau


def test_states_inside_vllm_are_eyas_own(
    served: Served, shipped: Path, target: Target, prompts: list[TokenisedPrompt], row: Note
) -> None:
    answered = served.answered
    drafter = trained_drafter(open_checkpoint(shipped), target)
    ids = [*prompts[0].ids, *answered.tokens[0]]
    calls = calls_of(load_file(served.states))
    found = differences(target, drafter, ids, calls)
    said = ", ".join(f"{kind} {value:.0e}" for kind, value in found.largest.items())
    rows = found.rows["pre-norm"]
    row("vLLM, states", served.dialect, "", "", said, f"relative, the largest of {rows} rows")
    assert rows >= 100
    assert set(found.largest) == {"captured", "fused", "pre-norm", "post-norm"}
    assert max(found.largest.values()) <= 1e-3
    with torch.no_grad():  # what one wrong weight of 9.8 million does is seen
        drafter.norm.weight[0] *= 1.5
    seen = differences(target, drafter, ids, calls).largest
    assert seen["post-norm"] > 1e-3 > seen["pre-norm"]
