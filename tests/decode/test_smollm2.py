"""The real drafter on the real target, in float32: exact output, and acceptance floors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from eyas import engines
from eyas.checkpoint import open_checkpoint, open_target
from eyas.data.answers import chat_ids
from eyas.data.prompts import read_prompts
from eyas.decode.answers import Answers, TokenisedPrompt, answer_all, one_of_each
from eyas.decode.generation import divergence
from eyas.demo.assets import PROMPTS
from eyas.demo.views import flatten
from eyas.dialects import specforge
from eyas.model.drafter import Drafter
from eyas.model.llama import LlamaTarget
from eyas.model.load import load_target, load_tokenizer
from eyas.model.served import Fill, served_drafter
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.spec import Served

STEPS = 3
TAU_FLOOR = 1.35
# Five prompts are one category and a bit; the weakest may lie below the mean over six.
TAU_FLOOR_OF_A_PART = 1.2


@pytest.fixture(scope="module")
def target(smollm2: Path) -> Target:
    return load_target(smollm2, dtype=torch.float32)


@pytest.fixture(scope="module")
def prompts(smollm2: Path) -> list[TokenisedPrompt]:
    tokenizer = load_tokenizer(smollm2)
    return [
        TokenisedPrompt(category=prompt.category, ids=tuple(chat_ids(tokenizer, prompt)))
        for prompt in read_prompts(PROMPTS)
    ]


@pytest.fixture(scope="module")
def drafter(target: Target, trained_here: Path) -> Drafter:
    return trained_drafter(open_checkpoint(trained_here), target)


def test_the_target_is_on_the_fast_path(target: Target) -> None:
    assert isinstance(target, LlamaTarget)


# Four parts of five prompts, so that two workers can share them.
@pytest.mark.parametrize("part", range(4))
def test_greedy_output_is_the_targets_own_on_20_prompts_of_128_tokens(
    part: int,
    target: Target,
    drafter: Drafter,
    prompts: list[TokenisedPrompt],
    measured: Callable[[str], None],
) -> None:
    endless = prompts[5 * part : 5 * part + 5]
    plain = answer_all(target, endless, max_new=128, stop_at_eos=False)
    drafted = answer_all(
        target, endless, max_new=128, drafter=drafter, steps=STEPS, stop_at_eos=False
    )
    pairs = zip(plain.generations, drafted.generations, strict=True)
    found = [d for alone, together in pairs if (d := divergence(alone, together)) is not None]
    measured(f"tau {drafted.acceptance.tau:.3f}, divergences {found}")
    assert all(len(g.tokens) == 128 for g in (*plain.generations, *drafted.generations))
    # a near-tie is numeric; one in 10,000 positions may be, which is none in these 2,560
    assert not [d for d in found if not d.numeric]
    assert not found
    # equality passes with a dead drafter
    tau = drafted.acceptance.tau
    assert tau is not None
    assert tau >= TAU_FLOOR_OF_A_PART


@pytest.fixture(scope="module")
def plain_of_each(target: Target, prompts: list[TokenisedPrompt]) -> Answers:
    return answer_all(target, one_of_each(prompts), max_new=32, stop_at_eos=False)


# Lower than TAU_FLOOR, as six answers of 32 tokens say less. A chain of one gains less than a chain
# of three, a longer one no less.
@pytest.mark.parametrize(("steps", "floor"), [(1, 1.2), (3, 1.3), (5, 1.3), (8, 1.3)])
def test_greedy_output_is_the_targets_own_for_chains_of_any_length(
    target: Target,
    drafter: Drafter,
    plain_of_each: Answers,
    steps: int,
    floor: float,
    measured: Callable[[str], None],
) -> None:
    drafted = answer_all(
        target,
        plain_of_each.prompts,
        max_new=32,
        drafter=drafter,
        steps=steps,
        stop_at_eos=False,
    )
    pairs = zip(plain_of_each.generations, drafted.generations, strict=True)
    found = [d for alone, together in pairs if (d := divergence(alone, together)) is not None]
    tau = drafted.acceptance.tau
    assert tau is not None
    measured(f"K = {steps}: tau {tau:.3f}, divergences {found}")
    assert not [d for d in found if not d.numeric]
    assert len(found) <= 1
    assert floor <= tau <= steps + 1


def test_the_sound_drafter_reaches_the_floor_over_24_prompts(
    target: Target,
    drafter: Drafter,
    prompts: list[TokenisedPrompt],
    measured: Callable[[str], None],
) -> None:
    assert len(prompts) == 24
    answers = answer_all(target, prompts, max_new=64, drafter=drafter, steps=STEPS)
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
    sound = answer_all(target, few, max_new=32, drafter=drafter, steps=STEPS).acceptance
    rate = sound.accepted / sound.rounds
    for fill in Fill:
        ruined = served_drafter(served, checkpoint, target, fill=fill)
        lost = answer_all(target, few, max_new=32, drafter=ruined, steps=STEPS).acceptance
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
