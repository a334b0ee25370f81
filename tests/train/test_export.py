"""An exported drafter, read back through its dialect, is the one that was trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from eyas import dialects
from eyas.checkpoint import open_checkpoint
from eyas.errors import CheckpointError
from eyas.model.drafter import Drafter
from eyas.spec import Eagle3Spec
from eyas.train.export import export_drafter
from eyas.train.vocabulary import DraftVocabulary

VOCABULARY = DraftVocabulary(ids=tuple(range(0, 32, 2)), vocab_size=40, coverage=1.0)


def export(drafter: Drafter, directory: Path) -> Path:
    return export_drafter(
        drafter,
        VOCABULARY,
        directory,
        target_name="org/tiny",
        target_architecture="LlamaForCausalLM",
        speculative_tokens=3,
        extra_files={"README.md": "# card\n"},
    )


def test_the_directory_says_what_was_trained(
    make_drafter: Callable[..., Drafter], tmp_path: Path
) -> None:
    drafter = make_drafter(dtype=torch.float32)
    directory = export(drafter, tmp_path / "draft")
    checkpoint = open_checkpoint(directory)
    dialect, spec = dialects.read(checkpoint)
    assert dialect.name == "speculators"
    assert isinstance(spec, Eagle3Spec)
    trained = drafter.spec
    for fact in ("hidden_size", "feedback", "norm_before_residual", "vocab_map", "rope", "head"):
        assert getattr(spec, fact).value == getattr(trained, fact).value, fact
    assert spec.conditioning.boundaries.value == (1, 2, 4)
    assert checkpoint.tensors.keys() == {*drafter.state_dict(), "t2d"}
    assert checkpoint.tensors["d2t"].dtype == "I64"
    assert checkpoint.tensors["t2d"].dtype == "BOOL"
    assert checkpoint.tensors["fc.weight"].dtype == "BF16"
    fc = torch.frombuffer(bytearray(checkpoint.read_bytes("fc.weight")), dtype=torch.bfloat16)
    assert torch.equal(fc, drafter.fc.weight.detach().bfloat16().flatten())
    config = checkpoint.config["speculators_config"]["verifier"]
    assert config == {"name_or_path": "org/tiny", "architectures": ["LlamaForCausalLM"]}
    assert (directory / "README.md").read_text() == "# card\n"


def test_an_existing_directory_is_left_alone(
    make_drafter: Callable[..., Drafter], tmp_path: Path
) -> None:
    (tmp_path / "draft").mkdir()
    with pytest.raises(CheckpointError, match="exists already"):
        export(make_drafter(), tmp_path / "draft")
    assert not list((tmp_path / "draft").iterdir())
