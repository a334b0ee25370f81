"""A directory with more weight files than the drafter's."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.checkpoint.torch_archive import PICKLE, pickle_weights
from tests.engines.drafters import H, flat_config, shapes, target

from eyas.checkpoint import Checkpoint, open_checkpoint
from eyas.engines import EngineRef, Launch, read
from eyas.errors import CheckpointError
from eyas.spec import Fate, NotChecked, Served

ENGINES = ("vllm@0.33.0:v1", "sglang@0.5.23")


def directory(folder: Path, *, stray: str, names: tuple[str, ...]) -> Checkpoint:
    """A drafter, and a file `stray` beside it that holds `names` once more."""
    config = flat_config() | {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 6, 9]}}
    (folder / "config.json").write_text(json.dumps(config))
    kinds = {"d2t": np.int64, "t2d": np.bool_}
    own = {n: np.zeros(s, kinds.get(n, np.float16)) for n, s in shapes().items()}
    save_file(own, folder / "model.safetensors")
    save_file({n: own.get(n, np.zeros(H, np.float16)) for n in names}, folder / stray)
    return open_checkpoint(folder)


def served(engine: str, checkpoint: Checkpoint) -> Served:
    result = read(EngineRef.parse(engine), checkpoint, target=target(), launch=Launch())
    assert isinstance(result, Served), result
    assert result.landing is not None
    assert result.landing.imbalance() == ()
    return result


@pytest.mark.parametrize("engine", ENGINES)
def test_the_file_that_is_read_last_wins(engine: str, tmp_path: Path) -> None:
    checkpoint = directory(tmp_path, stray="z_old.safetensors", names=("fc.weight", "t2d"))
    landing = served(engine, checkpoint).landing
    fc = next(p for p in landing.parameters if p.name == "model.fc.weight")
    assert fc.tensors == ("z_old.safetensors :: fc.weight",)
    assert [t.name for t in landing.lost] == ["fc.weight"]
    assert "z_old.safetensors" in landing.lost[0].reason
    masks = [t.fate for t in landing.tensors if t.name.endswith("t2d")]
    assert masks == [Fate.IGNORED, Fate.IGNORED]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_that_is_read_first_changes_nothing(engine: str, tmp_path: Path) -> None:
    checkpoint = directory(tmp_path, stray="a_old.safetensors", names=("fc.weight",))
    landing = served(engine, checkpoint).landing
    assert landing.lost == ()
    assert {t.name for t in landing.tensors} == set(checkpoint.tensors)


def test_a_tensor_of_the_other_file_alone_is_read_too(tmp_path: Path) -> None:
    checkpoint = directory(tmp_path, stray="a_old.safetensors", names=("extra.weight",))
    result = read(EngineRef.parse(ENGINES[0]), checkpoint, target=target(), launch=Launch())
    assert isinstance(result, Served)
    assert "extra.weight" in result.refusal.message


@pytest.mark.parametrize("other", ["old.bin", "model.safetensors"])
def test_which_of_two_pickles_is_read_last_is_not_said(other: str, tmp_path: Path) -> None:
    directory(tmp_path, stray="z_old.safetensors", names=())
    (tmp_path / "z_old.safetensors").unlink()
    own = pickle_weights(tmp_path) / PICKLE
    assert isinstance(served(ENGINES[0], open_checkpoint(own)), Served)
    (tmp_path / other).write_bytes(b"never opened")
    result = read(EngineRef.parse(ENGINES[0]), open_checkpoint(own), target=None, launch=Launch())
    assert isinstance(result, NotChecked)
    assert f"also holds {other}, and eyas does not know which" in result.reason


def test_another_file_that_is_not_sound_is_told(tmp_path: Path) -> None:
    checkpoint = directory(tmp_path, stray="z_old.safetensors", names=("fc.weight",))
    (tmp_path / "z_old.safetensors").write_bytes(b"no header at all")
    with pytest.raises(CheckpointError, match=r"z_old\.safetensors"):
        read(EngineRef.parse(ENGINES[0]), checkpoint, target=target(), launch=Launch())
