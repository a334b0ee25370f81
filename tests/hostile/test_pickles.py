"""Pickles beside, instead of, or under the name of weights: none is ever opened."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from eyas.checkpoint import open_checkpoint
from eyas.errors import CheckpointError

PICKLED = "pytorch_model.bin"


class Touches:
    """Pickled, it makes `path` in whoever loads it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.fixture
def trap(tmp_path: Path) -> Any:
    """The bytes of a pickle that leaves a trace, and the test that it left none."""
    trace = tmp_path / "trace"
    raw = pickle.dumps(Touches(trace))
    pickle.loads(raw)
    assert trace.exists()  # it works
    trace.unlink()
    yield raw
    assert not trace.exists()


@pytest.mark.parametrize("name", [PICKLED, "model.pt", "eagle.pth"])
def test_weights_that_are_pickled_alone(
    drafter: Path, refused: Any, trap: bytes, name: str
) -> None:
    (drafter / "model.safetensors").unlink()
    (drafter / name).write_bytes(trap)

    error = refused(drafter, CheckpointError)

    assert f"only as {name}" in error.message
    assert error.hint == "save them as model.safetensors"


def test_a_pickle_under_another_name(drafter: Path, refused: Any, trap: bytes) -> None:
    (drafter / "model.safetensors").write_bytes(trap)

    assert "is not a sound safetensors file" in refused(drafter, CheckpointError).message


def test_a_pickle_that_an_index_names(drafter: Path, refused: Any, trap: bytes) -> None:
    (drafter / PICKLED).write_bytes(trap)
    index = {"weight_map": {"fc.weight": "model.safetensors", "d2t": PICKLED}}
    (drafter / "model.safetensors.index.json").write_text(json.dumps(index))

    assert PICKLED in refused(drafter, CheckpointError).message


def test_a_pickle_beside_the_weights_is_left_alone(drafter: Path) -> None:
    os.mkfifo(drafter / PICKLED)  # whoever opens it waits for ever

    assert open_checkpoint(drafter).read_integers("d2t") == [0, 3]
