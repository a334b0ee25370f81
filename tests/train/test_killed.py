"""A stage that is killed and run again ends in the files of one that was never disturbed."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.killed_stages import STAGES, Moment, run

SOURCES = {"states": "answers", "training": "states"}  # which stage reads what another wrote


@dataclass(frozen=True, slots=True, kw_only=True)
class Undisturbed:
    """What a stage wrote when nothing ended it: its files, its checkpoints, its calls."""

    source: Path
    files: dict[str, bytes]
    checkpoints: list[bytes]
    largest: int
    calls: int


def in_a_process(
    stage: str, source: Path, out: Path, moment: Moment | None = None, calls: Path | None = None
) -> int | None:
    """The exit status of a process of its own, forked from one that has imported all it needs."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload([run.__module__, "torch._dynamo"])  # what an optimizer imports
    process = forks.Process(target=run, args=(stage, source, out, moment, calls), daemon=True)
    process.start()
    process.join(120)
    return process.exitcode


def files_of(directory: Path) -> dict[str, bytes]:
    """What each file holds, to the bit."""
    if not directory.exists():
        return {}
    return {file.name: held_by(file) for file in directory.iterdir()}


def held_by(file: Path) -> bytes:
    if file.suffix != ".pt":
        return file.read_bytes()
    # whether pickle writes equal strings once or twice hangs on where they came from
    return repr(list(leaves(torch.load(file, weights_only=True)))).encode()


def leaves(held: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(held, dict):
        for name in held:
            yield from leaves(held[name], *path, str(name))
    elif isinstance(held, torch.Tensor):
        yield path, (held.dtype, held.shape, held.numpy().tobytes())
    else:
        yield path, held


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Undisturbed]]:
    root = tmp_path_factory.mktemp("undisturbed")
    found = {}
    for stage in STAGES:
        source, out, calls = root / SOURCES.get(stage, "none"), root / stage, root / "calls"
        assert in_a_process(stage, source, out, calls=calls) == 0
        found[stage] = Undisturbed(
            source=source,
            files=files_of(out),
            checkpoints=list(files_of(root / f"{stage}.checkpoints").values()),
            largest=max(file.stat().st_size for file in out.iterdir()),
            calls=int(calls.read_text()),
        )
    yield found
    shutil.rmtree(root)


def moments(stage: str, whole: Undisturbed) -> list[Moment]:
    """Drawn anew for every stage: anywhere, around the naming of a file, in the midst of one."""
    chance = random.Random(stage)
    named = len(whole.checkpoints) or len(whole.files)
    return [
        *(Moment(kind="call", number=chance.randint(1, whole.calls)) for _ in range(3)),
        Moment(kind="after a rename", number=1),
        Moment(kind="before a rename", number=chance.randint(1, named)),
        Moment(kind="byte", number=chance.randint(1, whole.largest - 1)),
    ]


def test_the_stages_are_worth_killing(undisturbed: dict[str, Undisturbed]) -> None:
    assert len(undisturbed["answers"].files) == 4  # three shards and what they are made of
    assert len(undisturbed["states"].files) == 3
    assert len(set(undisturbed["training"].checkpoints)) >= 3
    assert all(whole.calls > 100 for whole in undisturbed.values())


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_stage_ends_in_the_same_files(
    stage: str, undisturbed: dict[str, Undisturbed], tmp_path: Path
) -> None:
    whole = undisturbed[stage]
    for number, moment in enumerate(moments(stage, whole)):
        out = tmp_path / str(number)
        ended_by = signal.SIGXFSZ if moment.kind == "byte" else signal.SIGKILL
        assert in_a_process(stage, whole.source, out, moment) == -ended_by, moment

        left = files_of(out)
        begun = {name: left.pop(name) for name in list(left) if name.endswith(".unfinished")}
        for name, held in left.items():
            assert held in (whole.files.get(name), *whole.checkpoints), (moment, name)
        assert len(begun) == 1 or moment.kind in ("call", "after a rename")

        assert in_a_process(stage, whole.source, out) == 0, moment
        assert files_of(out).keys() == whole.files.keys(), moment
        assert files_of(out) == whole.files, moment
