"""What others copy: the pre-commit hook and the GitHub Action."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from eyas.cli import main

ROOT = Path(__file__).resolve().parents[2]
Make = Callable[..., Path]
RUN = "import sys; from eyas.cli import main; sys.exit(main())"


def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return loaded


def test_the_hook_runs_the_command_on_what_args_names(make_drafter: Make) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program, *arguments = hook["entry"].split()
    assert (program, hook["language"], hook["pass_filenames"]) == ("eyas", "python", False)
    assert main([*arguments, str(make_drafter()), "--engine", "sglang@0.5.23"]) == 0


@pytest.mark.parametrize(
    ("file", "runs"),
    [
        ("draft/config.json", True),
        ("config.json", True),
        ("draft/model.safetensors", True),
        ("a/model.safetensors.index.json", True),
        ("drafts/eagle3.gguf", True),
        ("draft/pytorch_model.bin", True),
        ("draft/pytorch_model.bin.index.json", True),
        ("a/tokenizer_config.json", False),
        ("a/config.json.md", False),
        ("README.md", False),
    ],
)
def test_the_hook_runs_when_a_drafter_changes(file: str, runs: bool) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert bool(re.search(hook["files"], file)) is runs


def test_every_input_of_the_action_is_used_and_none_inside_a_script() -> None:
    steps = action()["runs"]["steps"]
    assert not [step for step in steps if "${{" in step.get("run", "")]
    used = {value for step in steps for value in step.get("env", {}).values()}
    assert {"${{ inputs." + name + " }}" for name in action()["inputs"]} <= used
    for step in steps:
        for variable in step.get("env", {}):
            assert f"${variable}" in step["run"].replace("{", "")


def run_action(tmp_path: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The last step of the action as a runner would run it, with this eyas as the installed one."""
    program = tmp_path / "eyas" / "bin" / "eyas"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/bash\nexec "{sys.executable}" -c "{RUN}" "$@"\n')
    program.chmod(0o755)
    step = action()["runs"]["steps"][-1]
    given = {
        variable: inputs.get(name, action()["inputs"][name].get("default"))
        for variable, value in step["env"].items()
        for name in [value.removeprefix("${{ inputs.").removesuffix(" }}")]
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],  # as GitHub does
        env={**os.environ, "RUNNER_TEMP": str(tmp_path), **given},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_action_annotates_and_fails(make_drafter: Make, tmp_path: Path) -> None:
    draft = make_drafter("a draft; touch x", layer="layers.0.")
    done = run_action(tmp_path, draft=str(draft), engine="sglang@0.5.10.post1")
    assert done.returncode == 1, done.stderr
    assert "::error file=" in done.stdout
    assert "L202 layer-dropped" in done.stdout


def test_the_action_passes_every_input_on(make_drafter: Make, tmp_path: Path) -> None:
    done = run_action(
        tmp_path,
        draft=str(make_drafter()),
        engine="sglang@0.5.23",
        launch="speculative_algorithm=EAGLE\ncontext_length=4096\n",
        select="F,N5",
        ignore="F302",
        values="true",
        strict="true",
        output=str(tmp_path / "report.json"),
        format="json",
        **{"fail-on": "warning"},
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert {f["code"] for f in report["findings"]} >= {"F301", "N505"}
    assert "F302" in " ".join(report["left_out"])
