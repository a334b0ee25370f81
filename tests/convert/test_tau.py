"""The drafter that was trained here, converted: on real prompts every round accepts the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from tests.decode.record import demo_prompts

from eyas import engines
from eyas.checkpoint import Checkpoint, open_checkpoint, open_target
from eyas.convert import DialectGoal, Goal, convert
from eyas.decode.acceptance import Acceptance
from eyas.decode.greedy import generate
from eyas.dialects import WRITABLE
from eyas.engines import EngineRef, Launch
from eyas.errors import ConversionError
from eyas.model.drafter import Drafter
from eyas.model.load import load_target
from eyas.model.served import Fill, served_drafter
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.spec import Served

STEPS, TOKENS, FLOOR = 3, 20, 1.5
DIALECTS = [name for name in WRITABLE if name not in ("deepspec", "dflash")]
SERVED = ("sglang@0.5.10.post1", "sglang@0.5.23", "vllm@0.33.0:v2", "llamacpp@11549")
Rounds = list[tuple[tuple[int, ...], int]]


@pytest.fixture(scope="module")
def target(smollm2: Path) -> Target:
    return load_target(smollm2, dtype=torch.float32)


@pytest.fixture(scope="module")
def prompts(smollm2: Path) -> list[tuple[int, ...]]:
    """Two of the demo's, of two categories."""
    return [prompt.ids for prompt in demo_prompts(smollm2)[12:20:7]]


def rounds_of(target: Target, prompts: Sequence[Sequence[int]], drafter: Drafter) -> Rounds:
    """The tokens of each round over all `prompts`, and how many of them were drafted."""
    found: Rounds = []
    for ids in prompts:
        generate(
            target,
            ids,
            max_new=TOKENS,
            drafter=drafter,
            steps=STEPS,
            stop_at_eos=False,
            hear=lambda tokens, drafted: found.append((tuple(tokens), drafted)),
        )
    return found


@pytest.fixture(scope="module")
def unconverted(target: Target, prompts: list[tuple[int, ...]], trained_here: Path) -> Rounds:
    rounds = rounds_of(target, prompts, trained_drafter(open_checkpoint(trained_here), target))
    tau = Acceptance.of(STEPS, [drafted for _, drafted in rounds]).tau
    assert tau is not None
    assert tau >= FLOOR  # two dead drafters accept the same too
    return rounds


def converted(source: Path, out: Path, goal: Goal, smollm2: Path) -> Checkpoint:
    convert(open_checkpoint(source), out, goal, target=open_target(str(smollm2)))
    return open_checkpoint(out)


@pytest.mark.parametrize("name", DIALECTS)
def test_every_round_of_a_dialect_accepts_the_same(
    name: str,
    target: Target,
    prompts: list[tuple[int, ...]],
    unconverted: Rounds,
    trained_here: Path,
    smollm2: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / ("draft.gguf" if name == "gguf" else "draft")
    checkpoint = converted(trained_here, out, DialectGoal(name), smollm2)
    assert rounds_of(target, prompts, trained_drafter(checkpoint, target)) == unconverted


@pytest.mark.parametrize("engine", SERVED)
def test_every_round_as_served_accepts_the_same(
    engine: str,
    target: Target,
    prompts: list[tuple[int, ...]],
    unconverted: Rounds,
    trained_here: Path,
    smollm2: Path,
    tmp_path: Path,
    measured: Callable[[str], None],
) -> None:
    ref = EngineRef.parse(engine)
    out = tmp_path / ("draft.gguf" if ref.name == "llamacpp" else "draft")
    checkpoint = converted(trained_here, out, ref, smollm2)
    served = engines.read(ref, checkpoint, target=open_target(str(smollm2)), launch=Launch())
    assert isinstance(served, Served)
    drafter = served_drafter(served, checkpoint, target, fill=Fill.NORMAL)
    rounds = rounds_of(target, prompts, drafter)
    assert rounds == unconverted
    record = Acceptance.of(STEPS, [drafted for _, drafted in rounds])
    measured(f"tau {record.tau:.3f} over {record.rounds} rounds, as before")


@pytest.mark.parametrize("name", sorted(set(WRITABLE) - set(DIALECTS)))
def test_the_others_cannot_hold_it(name: str, trained_here: Path, tmp_path: Path) -> None:
    with pytest.raises(ConversionError):
        convert(open_checkpoint(trained_here), tmp_path / "out", DialectGoal(name))
