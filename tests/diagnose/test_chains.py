"""One unrolling counts what decoding would accept, round by round."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from eyas import engines
from eyas.checkpoint import open_checkpoint
from eyas.decode.replay import replay
from eyas.diagnose.bench import Bench
from eyas.diagnose.chains import Chains, chains
from eyas.diagnose.reading import as_served, declared
from eyas.diagnose.variant import Variant, built
from eyas.engines import EngineRef, Launch
from eyas.model.served import Fill
from eyas.model.trained import trained_drafter
from eyas.spec import Served

STEPS = 4


@pytest.fixture(scope="module")
def trained(bench: Bench, trained_here: Path) -> Variant:
    return declared(open_checkpoint(trained_here), bench.target).variant


def assert_replayed(bench: Bench, variant: Variant, found: Chains) -> int:
    drafter, accepted = built(variant, bench.target), 0
    for number in range(0, len(bench.evidence.texts), 2):
        text = bench.evidence.texts[number]
        ids = list(text.ids)
        prompt, answer = ids[: text.prompt], ids[text.prompt : text.prompt + text.answer]
        rounds = replay(bench.target, drafter, prompt, answer, steps=STEPS)
        assert found.rounds_of(number) == rounds
        accepted += rounds.accepted
    return accepted


def test_rounds_are_those_of_a_replay(bench: Bench, trained: Variant) -> None:
    found = chains(built(trained, bench.target), bench.evidence, STEPS)
    assert assert_replayed(bench, trained, found) > 50
    assert found.tau.value > 1.5
    for number, text in enumerate(bench.evidence.texts):
        drafted, rounds = found.drafted(number), found.rounds_of(number)
        assert len(drafted) == text.answer
        assert drafted.count(False) in (rounds.rounds, rounds.rounds + 1)
    assert found.tau.value == found.rounds.tau


def test_rounds_are_those_of_a_replay_without_fusion(bench: Bench, trained_here: Path) -> None:
    checkpoint = open_checkpoint(trained_here)
    ref, launch = EngineRef.parse("vllm@0.33.0"), Launch.parse(["method=eagle"])
    view = engines.read(ref, checkpoint, target=bench.facts, launch=launch)
    assert isinstance(view, Served)
    served = as_served(view, checkpoint, bench.target, Fill.ZEROS)
    found = chains(built(served, bench.target), bench.evidence, STEPS)
    assert_replayed(bench, served, found)


def test_every_step_changes_closeness_alone(bench: Bench, trained: Variant) -> None:
    drafter = built(trained, bench.target)
    quick, every = (chains(drafter, bench.evidence, STEPS, every=flag) for flag in (False, True))
    for one, other in zip(quick.accepted, every.accepted, strict=True):
        np.testing.assert_array_equal(one, other)
    # the first step is looked at everywhere either way
    np.testing.assert_allclose(quick.closeness[:, 0], every.closeness[:, 0])
    assert (every.closeness[:, 1:] > quick.closeness[:, 1:]).all()
    assert (every.closeness <= 1).all()


def test_the_variant_is_the_drafter_that_decoding_builds(
    bench: Bench, trained: Variant, trained_here: Path
) -> None:
    theirs = trained_drafter(open_checkpoint(trained_here), bench.target).state_dict()
    ours = built(trained, bench.target).state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[role], theirs[role]) for role in ours)


def test_a_drafter_of_zeros_or_nan_accepts_nothing_and_is_near_nothing(
    bench: Bench, trained: Variant
) -> None:
    head = trained.state["lm_head.weight"]
    for number in (0.0, float("nan")):
        broken = trained.with_state({"lm_head.weight": torch.full_like(head, number)})
        found = chains(built(broken, bench.target), bench.evidence, 2, every=True)
        assert found.expected_tau < 1.01
        assert found.nearness < 0.01


def test_a_small_fault_is_felt_in_closeness_beyond_chance(bench: Bench, trained: Variant) -> None:
    """What costs two hundredths of tau is told apart all the same."""
    sound = chains(built(trained, bench.target), bench.evidence, 2, every=True)
    assert sound.gain_over(sound).value == 0
    shifted = replace(trained, shift=1)
    other = chains(built(shifted, bench.target), bench.evidence, 2, shift=1, every=True)
    gain = sound.gain_over(other, 0.99)
    assert gain.interval is not None
    assert gain.interval.low > 0
