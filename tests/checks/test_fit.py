from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eyas.cli import main

Make = Callable[..., Path]


def target(directory: Path, width: int) -> Path:
    directory.mkdir()
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": width,
        "num_hidden_layers": 12,
        "vocab_size": 32,
    }
    (directory / "config.json").write_text(json.dumps(config))
    return directory


@pytest.mark.parametrize(
    "command",
    [
        ("check", "--engine", "vllm@0.33.0"),
        ("landing", "--engine", "vllm@0.33.0"),
        ("convert", "OUT", "--to", "vllm@0.33.0"),
    ],
)
def test_a_target_of_another_width_is_a_slip_and_nothing_is_judged(
    command: tuple[str, ...],
    make_drafter: Make,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wide = target(tmp_path / "wide", 12)
    out = tmp_path / "out"
    verb, *options = [str(out) if word == "OUT" else word for word in command]
    code = main([verb, str(make_drafter()), *options, "--target", str(wide)])
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert "takes states 8 wide" in said.err
    assert f"{wide} is 12 wide" in said.err
    assert "--target" in said.err
    assert not out.exists()


def test_a_config_that_contradicts_its_own_fc_is_a_finding(
    make_drafter: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = make_drafter(target_hidden_size=16)
    fitting = target(tmp_path / "fitting", 8)
    code = main(["check", str(draft), "--engine", "vllm@0.33.0", "--target", str(fitting)])
    assert code == 1
    assert "T701" in capsys.readouterr().out
