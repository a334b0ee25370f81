"""SGLang's own loader lands what convert writes for it, and its parser takes what eyas prints."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from eyas.checkpoint import open_checkpoint, open_target
from eyas.convert import convert
from eyas.engines import EngineRef, Launch
from eyas.engines.serving import serving_command
from eyas.probe.answer import compared, interpreter_of, record_of
from eyas.probe.landing import landing_of
from eyas.probe.run import Limits

VERSIONS = ("0.5.8", "0.5.11", "0.5.23")
LAUNCH = Path(__file__).resolve().parents[1] / "src/eyas/probe/scripts/sglang_launch.py"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_tensor_of_a_conversion_lands(
    version: str, shipped: Path, smollm2: Path, tmp_path: Path
) -> None:
    ref, target = EngineRef.parse(f"sglang@{version}"), open_target(smollm2)
    convert(open_checkpoint(shipped), tmp_path / "draft", ref, target=target)
    draft = open_checkpoint(tmp_path / "draft")
    asked = interpreter_of("sglang", version, None)
    record = record_of(asked, None, draft, target, Launch(), Limits())
    answer = compared(record, None, draft, target, Launch())
    assert answer.observed.raised is None
    assert (answer.observed.version, answer.contract) == (version, f"sglang {version}")
    assert answer.disagreements == ()
    landing = landing_of(answer.observed, draft)
    assert [tensor.name for tensor in landing.lost] in ([], ["t2d"])  # training's mask
    assert landing.unfilled == ()


@pytest.mark.parametrize("version", ["0.5.11", "0.5.23"])
def test_the_parser_takes_the_line_that_eyas_prints(
    version: str, shipped: Path, smollm2: Path, tmp_path: Path
) -> None:
    ref, draft = EngineRef.parse(f"sglang@{version}"), str(tmp_path / "draft")
    convert(open_checkpoint(shipped), draft, ref, target=open_target(smollm2))
    line = shlex.split(serving_command(ref, draft, str(smollm2), steps=5))
    (tmp_path / "lines.json").write_text(json.dumps([line, [*line, "--speculative-steps", "5"]]))
    asked = interpreter_of("sglang", version, None)
    command = [asked.python, LAUNCH, tmp_path / "lines.json", tmp_path / "out.json"]
    done = subprocess.run(
        command,
        env=os.environ | dict(asked.variables),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    taken, refused = json.loads((tmp_path / "out.json").read_text())["lines"]
    assert taken["error"] is None
    assert taken["given"] == {
        "model_path": str(smollm2),
        "speculative_algorithm": "EAGLE3",
        "speculative_draft_model_path": draft,
        "speculative_num_steps": 5,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 6,
    }
    assert refused["error"] is not None  # of an option that is none
