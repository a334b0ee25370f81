"""A target's directory is read, and no code that lies in it is run, whatever stdin says."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import torch

from eyas.errors import TargetError
from eyas.model.generic import load_generic
from eyas.model.load import load_target, load_tokenizer

CODE = """
from pathlib import Path

Path(__file__).with_name("ran").touch()
Path({mark!r}).touch()
"""
AUTO_MAP = {
    "AutoConfig": "custom.Custom",
    "AutoModelForCausalLM": "custom.Custom",
    "AutoTokenizer": ["custom.Custom", None],
}


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """The file that the repository's code would leave."""
    return tmp_path / "ran"


@pytest.fixture
def directory(tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "repository"
    made.mkdir()
    (made / "custom.py").write_text(CODE.format(mark=str(mark)))
    (made / "tokenizer_config.json").write_text(json.dumps({"auto_map": AUTO_MAP}))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
    return made


def write_config(directory: Path, **values: object) -> None:
    (directory / "config.json").write_text(json.dumps({"auto_map": AUTO_MAP, **values}))


def test_a_config_of_its_own_code_is_refused_and_not_run(directory: Path, mark: Path) -> None:
    write_config(directory, model_type="made_up", architectures=["Custom"])
    with pytest.raises(TargetError, match="a config that only code of its own can read"):
        load_target(directory)
    assert not mark.exists()


def test_a_model_of_its_own_code_is_refused_and_not_run(directory: Path, mark: Path) -> None:
    # the config is one that transformers reads, and has no causal language model
    write_config(directory, model_type="clip", architectures=["Custom"])
    with pytest.raises(TargetError, match="a model that only code of its own can read"):
        load_generic("x", directory, eos_ids=(), dtype=torch.float32, device=torch.device("cpu"))
    assert not mark.exists()


def test_a_tokenizer_of_its_own_code_is_refused_and_not_run(directory: Path, mark: Path) -> None:
    write_config(directory, model_type="made_up", architectures=["Custom"])
    with pytest.raises(TargetError, match="only code of its own can read"):
        load_tokenizer(directory)
    assert not mark.exists()
