"""Writing GGUF: what the gguf package reads is what was given, in pieces, and no more in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from eyas.checkpoint import TensorBytes, open_checkpoint
from eyas.checkpoint.gguf import GgufValue, read_typed
from eyas.checkpoint.gguf_write import write_gguf
from eyas.errors import CheckpointError

ARCHITECTURE = {"general.architecture": "eagle3"}
KEYS = {
    **ARCHITECTURE,
    "a.flag": True,
    "a.whole": 7,
    "a.number": 1e-5,
    "a.text": "déjà",
    "a.ids": [2, 15, 27],
    "a.bytes": GgufValue(value=[1, 2], kind=9, of=0),
    "a.texts": GgufValue(value=["x", "", "zé"] * 100, kind=9, of=8),
    "a.scores": GgufValue(value=[0.25, -1000.0] * 150, kind=9, of=6),
    "a.long": GgufValue(value=2**40, kind=10),
    "a.wide": GgufValue(value=1 / 3, kind=12),
}


def test_the_gguf_package_reads_what_was_given(tmp_path: Path) -> None:
    import gguf

    rng = np.random.default_rng(1)
    arrays = {
        "half": rng.standard_normal((3, 5)).astype("<f2"),
        "single": rng.standard_normal(7).astype("<f4"),
        "long": rng.integers(-9, 9, 4).astype("<i8"),
    }
    kinds = {"half": "F16", "single": "F32", "long": "I64"}
    tensors = {
        name: TensorBytes(dtype=kinds[name], shape=a.shape, data=a.tobytes())
        for name, a in arrays.items()
    }
    tensors["brain"] = TensorBytes(dtype="BF16", shape=(2, 3), data=bytes(range(12)))
    path = tmp_path / "d.gguf"

    write_gguf(path, KEYS, tensors)

    reader = gguf.GGUFReader(path)
    found = {tensor.name: tensor for tensor in reader.tensors}
    assert list(found) == list(tensors)
    for name, array in arrays.items():
        assert np.array_equal(found[name].data.reshape(array.shape), array)
        assert found[name].tensor_type.name == kinds[name]
    assert bytes(found["brain"].data) == bytes(range(12))
    assert reader.get_field("a.ids").contents() == [2, 15, 27]
    types = {f.name: [t.name for t in f.types] for f in reader.fields.values()}
    assert types["a.ids"] == ["ARRAY", "INT32"]
    assert [types[f"a.{k}"] for k in ("flag", "whole", "number", "text")] == [
        ["BOOL"],
        ["UINT32"],
        ["FLOAT32"],
        ["STRING"],
    ]
    assert path.stat().st_size % 32 == 0


def test_typed_values_are_copied_exactly(tmp_path: Path) -> None:
    write_gguf(tmp_path / "d.gguf", KEYS, {})
    typed = read_typed(tmp_path, "d.gguf", "a.")
    write_gguf(tmp_path / "e.gguf", ARCHITECTURE | typed, {})

    assert (tmp_path / "e.gguf").read_bytes() == (tmp_path / "d.gguf").read_bytes()
    assert typed["a.scores"].value[:2] == [0.25, -1000.0]


def test_a_tensor_is_not_in_memory(tmp_path: Path) -> None:
    piece, count = bytes(4 * 2**20), 32

    def pieces() -> Iterator[bytes]:
        for _ in range(count):
            yield piece

    rows = count * len(piece) // 2048
    tensor = TensorBytes(dtype="BF16", shape=(rows, 1024), data=pieces)
    write_gguf(tmp_path / "warm.gguf", ARCHITECTURE, {})  # its imports are no part of it
    tracemalloc.start()
    try:
        write_gguf(tmp_path / "d.gguf", ARCHITECTURE, {"a": tensor})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 8 * 2**20
    assert open_checkpoint(tmp_path / "d.gguf").tensors["a"].nbytes == count * len(piece)


def test_a_hole_takes_its_room_and_reads_as_zeros(tmp_path: Path) -> None:
    hole = TensorBytes(dtype="F32", shape=(5,), data=None)
    after = TensorBytes(dtype="I8", shape=(3,), data=b"\x01\x02\x03")
    write_gguf(tmp_path / "d.gguf", ARCHITECTURE, {"hole": hole, "after": after})
    checkpoint = open_checkpoint(tmp_path / "d.gguf")
    assert checkpoint.read_bytes("hole") == bytes(20)
    assert checkpoint.read_bytes("after") == b"\x01\x02\x03"


@pytest.mark.parametrize(
    ("keys", "name", "tensor", "reason"),
    [
        ({}, "a", TensorBytes(dtype="F32", shape=(2,), data=bytes(7)), "has 7 bytes"),
        ({}, "a", TensorBytes(dtype="F32", shape=(2,), data=lambda: [bytes(9)]), "has 9 bytes"),
        ({}, "a", TensorBytes(dtype="BOOL", shape=(2,), data=bytes(2)), "BOOL numbers"),
        ({}, "a" * 64, TensorBytes(dtype="I8", shape=(2,), data=bytes(2)), "a name of 64 bytes"),
        ({}, "a", TensorBytes(dtype="I8", shape=(1,) * 5, data=bytes(1)), "5 dimensions"),
        ({"k": None}, "a", TensorBytes(dtype="I8", shape=(1,), data=b"1"), "k has the value None"),
        ({"k": 2**33}, "a", TensorBytes(dtype="I8", shape=(1,), data=b"1"), "a number of its keys"),
        ({"k": 1e300}, "a", TensorBytes(dtype="I8", shape=(1,), data=b"1"), "a number of its keys"),
    ],
)
def test_what_the_format_has_not_is_one_sentence(
    tmp_path: Path, keys: dict[str, object], name: str, tensor: TensorBytes, reason: str
) -> None:
    with pytest.raises(CheckpointError) as refused:
        write_gguf(tmp_path / "d.gguf", ARCHITECTURE | keys, {name: tensor})
    assert reason in refused.value.message


def test_a_disk_that_refuses_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be written: no such file"):
        write_gguf(tmp_path / "absent" / "d.gguf", ARCHITECTURE, {})
