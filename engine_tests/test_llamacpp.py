"""The drafter that was trained here in real llama.cpp, everything in float32.

The target is written with the very numbers that eyas computes with. llama.cpp counts the accepted
drafts that an answer keeps, and no round without a draft: at its end that is less than eyas counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

from engine_tests.conftest import MAX_NEW, Note
from engine_tests.prediction import Predictor, interval_of
from gguf import GGMLQuantizationType
from tests.engines import llamacpp_server
from tests.engines.llamacpp_target import write_target

from eyas.checkpoint import open_checkpoint, open_target
from eyas.convert import Wishes, convert, parse_goal
from eyas.decode.acceptance import Acceptance
from eyas.decode.answers import Answers, TokenisedPrompt
from eyas.engines import EngineRef, Launch

EVERY = 2  # of the prompts: its float32 products are the slowest here


def test_llamacpp_accepts_what_eyas_says(
    smollm2: Path,
    shipped: Path,
    prompts: list[TokenisedPrompt],
    drafted: Answers,
    predictor: Callable[..., Predictor],
    tmp_path: Path,
    row: Note,
) -> None:
    ids = [list(prompt.ids) for prompt in prompts[::EVERY]]
    (tmp_path / "prompts.json").write_text(json.dumps(ids), encoding="utf-8")
    target = write_target(smollm2, tmp_path / "target.gguf", GGMLQuantizationType.F32)
    goal = parse_goal("llamacpp")
    convert(
        open_checkpoint(shipped, weights=True),
        tmp_path / "draft.gguf",
        goal,
        target=open_target(smollm2),
        wishes=Wishes(dtype="float32"),
    )
    said = run(target, tmp_path / "draft.gguf", tmp_path / "prompts.json")

    # it ends at an EOS token, eyas's answers go on
    pairs = list(zip(drafted.generations[::EVERY], said["answers"], strict=True))
    same = sum(list(ours.tokens[: len(theirs)]) == theirs for ours, theirs in pairs)
    assert sum(len(theirs) == MAX_NEW for _, theirs in pairs) >= len(pairs) / 2
    draft = open_checkpoint(tmp_path / "draft.gguf")
    assert isinstance(goal, EngineRef)
    predicted = predictor(ids, said["answers"]).of(goal, draft, Launch.parse([]))
    (records,) = predicted.runs
    ours = Acceptance.total(records).tau
    theirs = 1 + said["accepted"] / said["rounds"]
    interval = interval_of(records)
    counts = [0, *(after["accepted"] for after in said["after"])]
    kept = [len(answer) - 1 - r.rounds for answer, r in zip(said["answers"], records, strict=True)]
    exact = sum(b - a == tokens for (a, b), tokens in zip(pairwise(counts), kept, strict=True))
    assert ours is not None
    row(
        f"llama.cpp {version('xllamacpp')}",
        "gguf, float32",
        f"{ours:.4f} [{interval.low:.2f}, {interval.high:.2f}]",
        f"{theirs:.4f}",
        f"{theirs - ours:+.4f}",
        f"{said['rounds']} rounds; of {len(records)} answers {exact} keep as many drafts as eyas's,"
        f" {same} are the same",
    )
    assert interval.low <= theirs <= interval.high
    assert abs(theirs / ours - 1) <= 0.05
    assert exact >= len(ids) - 2
    assert same >= len(ids) - 1  # its sums run in another order: a near-tie may fall otherwise


def run(target: Path, draft: Path, prompts: Path) -> dict[str, Any]:
    script = Path(llamacpp_server.__file__)
    command = [sys.executable, script, target, draft, prompts, str(MAX_NEW)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said
