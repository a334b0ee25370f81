"""Opening a checkpoint: a directory, shards, a single file; bytes and integers on request."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from eyas.checkpoint import TensorBytes, open_checkpoint, write_checkpoint
from eyas.errors import CheckpointError

CONFIG = {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 4}


def tensor(dtype: str, shape: tuple[int, ...], data: bytes) -> TensorBytes:
    return TensorBytes(dtype=dtype, shape=shape, data=data)


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    return write_checkpoint(
        tmp_path / "drafter",
        CONFIG,
        {
            "fc.weight": tensor("BF16", (2, 3), bytes(range(12))),
            "d2t": tensor("I64", (3,), struct.pack("<3q", 0, 5, -2)),
            "t2d": tensor("BOOL", (4,), b"\1\0\0\1"),
            "norm.weight": tensor("F32", (0,), b""),
        },
    )


def test_headers_and_config_come_from_a_directory(drafter: Path) -> None:
    checkpoint = open_checkpoint(drafter)

    assert checkpoint.location == str(drafter)
    assert checkpoint.config == CONFIG
    assert checkpoint.config_file == "config.json"
    assert checkpoint.files == ("model.safetensors",)
    assert checkpoint.revision is None
    fc = checkpoint.tensors["fc.weight"]
    assert (fc.name, fc.dtype, fc.shape, fc.file) == (
        "fc.weight",
        "BF16",
        (2, 3),
        "model.safetensors",
    )
    assert fc.nbytes == 12
    assert checkpoint.place("fc.weight") == "model.safetensors :: fc.weight"
    assert checkpoint.place("lm_head.weight") == "model.safetensors :: lm_head.weight"


def test_bytes_and_integers_are_what_was_written(drafter: Path) -> None:
    checkpoint = open_checkpoint(drafter)

    assert checkpoint.read_bytes("fc.weight") == bytes(range(12))
    assert checkpoint.read_bytes("norm.weight") == b""
    assert checkpoint.read_integers("d2t") == [0, 5, -2]
    assert checkpoint.read_integers("t2d") == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("dtype", "code", "values"),
    [
        ("U8", "B", [0, 255]),
        ("I8", "b", [-128, 127]),
        ("I16", "h", [-(2**15), 2**15 - 1]),
        ("U16", "H", [0, 2**16 - 1]),
        ("I32", "i", [-(2**31), 2**31 - 1]),
        ("U32", "I", [0, 2**32 - 1]),
        ("I64", "q", [-(2**63), 2**63 - 1]),
        ("U64", "Q", [0, 2**64 - 1]),
    ],
)
def test_every_integer_type_is_read(
    tmp_path: Path, dtype: str, code: str, values: list[int]
) -> None:
    data = struct.pack(f"<2{code}", *values)
    place = write_checkpoint(tmp_path / "d", CONFIG, {"d2t": tensor(dtype, (2,), data)})

    assert open_checkpoint(place).read_integers("d2t") == values


def test_a_float_map_is_refused(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "d", CONFIG, {"d2t": tensor("F32", (1,), bytes(4))})

    with pytest.raises(CheckpointError, match="holds F32 numbers where integers are needed"):
        open_checkpoint(place).read_integers("d2t")


def test_a_missing_tensor_is_named(drafter: Path) -> None:
    with pytest.raises(CheckpointError, match=r"has no tensor 'lm_head\.weight'"):
        open_checkpoint(drafter).read_bytes("lm_head.weight")


def test_a_single_file_takes_the_config_beside_it(drafter: Path) -> None:
    (drafter / "model.safetensors").rename(drafter / "epoch3.safetensors")

    checkpoint = open_checkpoint(drafter / "epoch3.safetensors")

    assert checkpoint.files == ("epoch3.safetensors",)
    assert checkpoint.place("d2t") == "epoch3.safetensors :: d2t"


def test_shards_are_those_of_the_index(tmp_path: Path) -> None:
    place = sharded(tmp_path)
    (place / "stray.safetensors").write_bytes((place / "a.safetensors").read_bytes())

    checkpoint = open_checkpoint(place)

    assert set(checkpoint.tensors) == {"fc.weight", "d2t"}
    assert checkpoint.files == ("a.safetensors", "b.safetensors")
    assert checkpoint.other_files == ("stray.safetensors",)
    assert checkpoint.place("d2t") == "b.safetensors :: d2t"
    assert checkpoint.read_integers("d2t") == [7]


def test_without_an_index_the_other_file_is_left_aside(drafter: Path) -> None:
    (drafter / "z_old.safetensors").write_bytes((drafter / "model.safetensors").read_bytes())

    checkpoint = open_checkpoint(drafter)

    assert checkpoint.files == ("model.safetensors",)
    assert checkpoint.other_files == ("z_old.safetensors",)


def test_without_index_and_model_file_a_tensor_in_two_files_is_refused(tmp_path: Path) -> None:
    place = sharded(tmp_path)
    (place / "model.safetensors.index.json").unlink()
    assert open_checkpoint(place).files == ("a.safetensors", "b.safetensors")

    (place / "c.safetensors").write_bytes((place / "b.safetensors").read_bytes())
    with pytest.raises(CheckpointError, match=r"'d2t' twice, in b\.safetensors and c\.safetensors"):
        open_checkpoint(place)


def sharded(tmp_path: Path) -> Path:
    place = tmp_path / "sharded"
    parts = {
        "a": {"fc.weight": tensor("BF16", (1, 2), b"abcd")},
        "b": {"d2t": tensor("I64", (1,), struct.pack("<q", 7))},
    }
    place.mkdir()
    weight_map = {}
    for name, tensors in parts.items():
        part = write_checkpoint(tmp_path / name, CONFIG, tensors)
        (part / "model.safetensors").rename(place / f"{name}.safetensors")
        weight_map.update(dict.fromkeys(tensors, f"{name}.safetensors"))
    (place / "config.json").write_text(json.dumps(CONFIG))
    index = {"metadata": {}, "weight_map": weight_map}
    (place / "model.safetensors.index.json").write_text(json.dumps(index))
    return place
