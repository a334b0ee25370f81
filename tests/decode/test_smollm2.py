"""The real drafter on the real target, in float32: exact output, and acceptance floors.

Equality passes with a dead drafter, so every test of it holds tau to a floor too: what was recorded
of the drafter in assets/ less a margin (tests/decode/record.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.decode.record import (
    CHAINS,
    COMMAND,
    PARTS,
    RECORDED,
    STEPS,
    answers_by_chains,
    answers_of_a_part,
    demo_prompts,
    floor,
)

from eyas import engines
from eyas.checkpoint import open_checkpoint, open_target
from eyas.decode.answers import Answers, TokenisedPrompt, answer_all, one_of_each
from eyas.decode.outcomes import fingerprint
from eyas.demo.acts import TAU_FLOOR
from eyas.demo.views import flatten
from eyas.dialects import specforge
from eyas.model.drafter import Drafter
from eyas.model.llama import LlamaTarget
from eyas.model.load import load_target
from eyas.model.served import Fill, served_drafter
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.spec import Served


@pytest.fixture(scope="module")
def target(smollm2: Path) -> Target:
    return load_target(smollm2, dtype=torch.float32)


@pytest.fixture(scope="module")
def prompts(smollm2: Path) -> list[TokenisedPrompt]:
    return demo_prompts(smollm2)


@pytest.fixture(scope="module")
def drafter(target: Target, trained_here: Path) -> Drafter:
    return trained_drafter(open_checkpoint(trained_here), target)


@pytest.fixture(scope="module")
def recorded() -> Mapping[str, Any]:
    record: dict[str, Any] = json.loads(RECORDED.read_text())
    return record


def test_the_target_is_on_the_fast_path(target: Target) -> None:
    assert isinstance(target, LlamaTarget)


def test_what_is_recorded_is_of_the_drafter_in_assets(
    trained_here: Path, recorded: Mapping[str, Any]
) -> None:
    assert recorded["drafter"] == fingerprint(open_checkpoint(trained_here)), f"renew: {COMMAND}"


def held(drafted: Answers, plain: Answers, least: float, note: Callable[[str], None]) -> None:
    """Drafted answers are the target's own by the one rule, and tau is at least `least`."""
    compared = drafted.compared_with(plain)
    tau = drafted.acceptance.tau
    assert tau is not None
    note("; ".join((f"tau {tau:.3f}, at least {least:.3f}", *compared.lines())))
    assert compared.exact
    assert tau >= least


@pytest.mark.parametrize("part", PARTS)
def test_greedy_output_is_the_targets_own_on_20_prompts_of_128_tokens(
    part: int,
    target: Target,
    drafter: Drafter,
    prompts: list[TokenisedPrompt],
    recorded: Mapping[str, Any],
    measured: Callable[[str], None],
) -> None:
    plain = answers_of_a_part(target, prompts, part, None)
    drafted = answers_of_a_part(target, prompts, part, drafter)
    assert [len(g.tokens) for g in plain.generations] == [128] * 5
    held(drafted, plain, floor(recorded, f"part {part}"), measured)


@pytest.fixture(scope="module")
def plain_of_each(target: Target, prompts: list[TokenisedPrompt]) -> Answers:
    return answers_by_chains(target, prompts, 0, None)


@pytest.mark.parametrize("steps", CHAINS)
def test_greedy_output_is_the_targets_own_for_chains_of_any_length(
    target: Target,
    drafter: Drafter,
    prompts: list[TokenisedPrompt],
    plain_of_each: Answers,
    steps: int,
    recorded: Mapping[str, Any],
    measured: Callable[[str], None],
) -> None:
    drafted = answers_by_chains(target, prompts, steps, drafter)
    held(drafted, plain_of_each, floor(recorded, f"K = {steps}"), measured)


def test_the_sound_drafter_reaches_the_floor_over_24_prompts(
    target: Target,
    drafter: Drafter,
    prompts: list[TokenisedPrompt],
    measured: Callable[[str], None],
) -> None:
    assert len(prompts) == 24
    answers = answer_all(target, prompts, max_new=32, drafter=drafter, steps=STEPS)
    rounded = {name: round(tau, 3) for name, tau in answers.tau_by_category.items()}
    measured(f"macro-mean tau {answers.tau:.3f}, by category {rounded}")
    assert len(answers.tau_by_category) == 6
    assert answers.tau >= TAU_FLOOR


def test_a_lost_layer_costs_at_least_half_of_what_was_accepted(
    target: Target,
    drafter: Drafter,
    prompts: list[TokenisedPrompt],
    trained_here: Path,
    smollm2: Path,
    tmp_path: Path,
    measured: Callable[[str], None],
) -> None:
    checkpoint = flatten(open_checkpoint(trained_here), tmp_path / "flat")
    served = engines.read(
        engines.EngineRef.parse("sglang@0.5.10.post1"),
        checkpoint,
        target=open_target(smollm2),
        launch=engines.Launch.parse([]),
    )
    assert isinstance(served, Served)
    few = one_of_each(prompts)
    sound = answer_all(target, few, max_new=16, drafter=drafter, steps=STEPS).acceptance
    rate = sound.accepted / sound.rounds
    for fill in Fill:
        ruined = served_drafter(served, checkpoint, target, fill=fill)
        lost = answer_all(target, few, max_new=16, drafter=ruined, steps=STEPS).acceptance
        measured(f"{fill}: tau {lost.tau:.3f} without its layer, {sound.tau:.3f} with it")
        assert lost.accepted / lost.rounds <= rate / 2


def test_flattening_by_hand_changes_names_and_nothing_else(
    trained_here: Path, tmp_path: Path
) -> None:
    before = open_checkpoint(trained_here)
    after = flatten(before, tmp_path / "flat")
    assert specforge.recognise(after) is not None
    assert set(after.tensors) == set(before.tensors)
    for name in ("fc.weight", "layers.0.mlp.down_proj.weight", "d2t"):
        assert after.read_bytes(name) == before.read_bytes(name)
