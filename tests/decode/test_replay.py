"""A replay counts what decoding counts, round by round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.decode.oracle import PROMPT, Oracle, tiny_target
from tests.decode.record import demo_prompts

from eyas import engines
from eyas.checkpoint import open_checkpoint, open_target
from eyas.decode.answers import one_of_each
from eyas.decode.greedy import generate
from eyas.decode.replay import replay
from eyas.demo.views import flatten
from eyas.errors import UsageError
from eyas.model.load import load_target
from eyas.model.served import Fill, served_drafter
from eyas.model.trained import trained_drafter
from eyas.spec import Served


@pytest.mark.parametrize("steps", [1, 3, 8])
@pytest.mark.parametrize("error", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("stops", [False, True])
def test_the_rounds_are_those_of_decoding(steps: int, error: float, stops: bool) -> None:
    free = generate(tiny_target(), PROMPT, max_new=60)
    target = tiny_target(eos_ids=(free.tokens[30],) if stops else ())
    first: Any = Oracle(text=PROMPT + free.tokens, error=error)
    drafted = generate(target, PROMPT, max_new=45, drafter=first, steps=steps)
    again: Any = Oracle(text=PROMPT + free.tokens, error=error)
    assert replay(target, again, PROMPT, drafted.tokens, steps=steps) == drafted.acceptance


def test_the_real_drafter_sound_and_as_engines_have_it(
    smollm2: Path, trained_here: Path, tmp_path: Path
) -> None:
    target = load_target(smollm2, dtype=torch.float32)
    flattened = flatten(open_checkpoint(trained_here), tmp_path / "flat")
    drafters = {"sound": trained_drafter(open_checkpoint(trained_here), target)}
    for name, version, options in (
        ("lost", "sglang@0.5.10.post1", []),
        ("EAGLE", "sglang@0.5.23", ["speculative_algorithm=EAGLE"]),
    ):
        view = engines.read(
            engines.EngineRef.parse(version),
            flattened,
            target=open_target(smollm2),
            launch=engines.Launch.parse(options),
        )
        assert isinstance(view, Served)
        drafters[name] = served_drafter(view, flattened, target, fill=Fill.SHUFFLED)
    taus = {}
    for name, drafter in drafters.items():
        for prompt in one_of_each(demo_prompts(smollm2))[:2]:
            live = generate(target, prompt.ids, max_new=24, drafter=drafter, steps=3)
            found = replay(target, drafter, prompt.ids, live.tokens, steps=3)
            assert found == live.acceptance
            taus[name] = found.tau
    assert taus["sound"] > 1.2
    assert taus["sound"] > taus["lost"]


def test_nothing_to_replay_is_refused() -> None:
    oracle: Any = Oracle(text=PROMPT, error=0.0)
    with pytest.raises(UsageError, match="a prompt, an answer"):
        replay(tiny_target(), oracle, PROMPT, (), steps=3)
