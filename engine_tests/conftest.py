"""What the tests of real engines share: the target, the prompts, eyas's own answers, the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_tests.prediction import Predictor
from engine_tests.serving import STEPS, Answered, Service, served_by_vllm
from tests.decode.record import demo_prompts

from eyas.checkpoint import open_checkpoint, open_target
from eyas.decode.answers import Answers, TokenisedPrompt, answer_all
from eyas.demo.assets import trained_here
from eyas.model.load import load_target
from eyas.model.smollm2 import ensure_smollm2
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.probe.environment import Environment, environment_of

MAX_NEW = 48
HEADS = ("engine", "checkpoint", "tau by eyas", "tau by the engine", "difference", "remark")
_ROWS = pytest.StashKey[list[tuple[str, ...]]]()

Note = Callable[..., None]
Serve = Callable[..., Answered]


def pytest_configure(config: pytest.Config) -> None:
    """The table is empty."""
    config.stash[_ROWS] = []


@pytest.fixture
def row(pytestconfig: pytest.Config) -> Note:
    """Adds a row to the table that is printed at the end."""
    return lambda *cells: pytestconfig.stash[_ROWS].append(tuple(map(str, cells)))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Prints the table, as docs/benchmarks.md has it."""
    rows = config.stash[_ROWS]
    if rows:
        terminalreporter.section("engines")
        for cells in (HEADS, ("---",) * len(HEADS), *rows):
            terminalreporter.write_line(f"| {' | '.join(cells)} |")


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The embedded target's directory."""
    return ensure_smollm2()


@pytest.fixture(scope="session")
def shipped() -> Path:
    """The drafter that was trained here, as the trainer saved it."""
    return trained_here()


@pytest.fixture(scope="session")
def target(smollm2: Path) -> Target:
    """The embedded target in float32."""
    return load_target(smollm2, dtype=torch.float32)


@pytest.fixture(scope="session")
def prompts(smollm2: Path) -> list[TokenisedPrompt]:
    """The demo's own prompts, the same ids for every engine."""
    return demo_prompts(smollm2)


@pytest.fixture(scope="session")
def drafted(target: Target, prompts: list[TokenisedPrompt], shipped: Path) -> Answers:
    """Greedy answers by eyas, drafted as trained; `make test` holds them to the target's own."""
    drafter = trained_drafter(open_checkpoint(shipped), target)
    return answer_all(
        target, prompts, max_new=MAX_NEW, drafter=drafter, steps=STEPS, stop_at_eos=False
    )


@pytest.fixture(scope="session")
def vllm() -> Environment:
    """vLLM's newest version that is installed."""
    return environment_of("vllm", None)


@pytest.fixture(scope="session")
def serve(vllm: Environment, smollm2: Path, prompts: list[TokenisedPrompt]) -> Serve:
    """Has vLLM answer: ``serve(draft, every=1, **more)``, as a `Service` has more."""

    def served(
        draft: Path | None, *, every: int = 1, max_new: int = MAX_NEW, **more: Any
    ) -> Answered:
        service = Service(
            target=smollm2,
            draft=draft,
            prompts=[prompt.ids for prompt in prompts[::every]],
            max_new=max_new,
            **more,
        )
        return served_by_vllm(vllm, service)

    return served


@pytest.fixture(scope="session")
def predictor(smollm2: Path, target: Target) -> Callable[..., Predictor]:
    """Predicts over given prompts and answers."""

    def over(prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[int]]) -> Predictor:
        return Predictor(
            target=target, facts=open_target(smollm2), prompts=prompts, answers=answers
        )

    return over
