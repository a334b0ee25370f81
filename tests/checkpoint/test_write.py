"""Writing a checkpoint: the Hugging Face layout, whole or not at all."""

from __future__ import annotations

import ctypes
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyas.checkpoint import TensorBytes, open_checkpoint, write_checkpoint, write_sparse
from eyas.checkpoint.layout import lay_out
from eyas.errors import CheckpointError

# The library takes torch's names; F4 and F6 pack several elements into a byte and are left out.
TORCH_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}
NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12)
SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(NAMES, st.tuples(st.sampled_from(sorted(TORCH_NAMES)), SHAPES), max_size=6))
def test_the_file_equals_the_librarys_own(headers: dict[str, tuple[str, tuple[int, ...]]]) -> None:
    from safetensors import TensorSpec, serialize

    _, ranges = lay_out(headers)
    data = {
        name: bytes((i + 1) % 251 for i in range(stop - start))
        for name, (start, stop) in ranges.items()
    }
    buffers = {name: ctypes.create_string_buffer(raw, len(raw) + 1) for name, raw in data.items()}
    theirs = serialize(
        {
            name: TensorSpec(
                dtype=TORCH_NAMES[dtype],
                shape=list(shape),
                data_ptr=ctypes.addressof(buffers[name]),
                data_len=len(data[name]),
            )
            for name, (dtype, shape) in headers.items()
        },
        {"format": "pt"},
    )

    with tempfile.TemporaryDirectory() as folder:
        tensors = {
            name: TensorBytes(dtype=dtype, shape=shape, data=data[name])
            for name, (dtype, shape) in headers.items()
        }
        place = write_checkpoint(Path(folder) / "d", {}, tensors)
        assert (place / "model.safetensors").read_bytes() == theirs
        checkpoint = open_checkpoint(place)
        assert {name: checkpoint.read_bytes(name) for name in headers} == data


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_config_extra_files_and_modes(tmp_path: Path, mask: int) -> None:
    config = {"ünï": 1, "nested": {"x": [1.5, None]}}

    before = os.umask(mask)
    try:
        place = write_checkpoint(
            tmp_path / "deep" / "out", config, {}, {"README.md": "# card", "raw.bin": b"\xff"}
        )
    finally:
        os.umask(before)

    assert json.loads((place / "config.json").read_text("utf-8")) == config
    assert (place / "README.md").read_text() == "# card"
    assert (place / "raw.bin").read_bytes() == b"\xff"
    modes = {stat.S_IMODE(file.stat().st_mode) for file in place.iterdir()}
    assert modes == {0o666 & ~mask}
    assert [p.name for p in place.parent.iterdir()] == ["out"]


def test_streamed_data_is_written_piece_by_piece(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"ab"
        yield b"\0\0"
        yield b"cd"

    tensor = TensorBytes(dtype="U8", shape=(6,), data=pieces)
    place = write_checkpoint(tmp_path / "a", {}, {"x": tensor})
    first = open_checkpoint(place)
    assert first.read_bytes("x") == b"ab\0\0cd"

    copied = TensorBytes(dtype="U8", shape=(6,), data=lambda: first.chunks("x"))
    again = write_checkpoint(tmp_path / "b", {}, {"y": copied})
    assert open_checkpoint(again).read_bytes("y") == b"ab\0\0cd"


def explode() -> Iterator[bytes]:
    yield b"ab"
    raise KeyboardInterrupt("stop")


@pytest.mark.parametrize(
    ("tensors", "config", "extra", "raised", "message"),
    [
        (
            {"x": TensorBytes(dtype="U8", shape=(3,), data=b"ab")},
            {},
            {},
            CheckpointError,
            "2 bytes",
        ),
        (
            {"x": TensorBytes(dtype="U8", shape=(3,), data=lambda: [b"ab"])},
            {},
            {},
            CheckpointError,
            "has 2 bytes where U8",
        ),
        (
            {"x": TensorBytes(dtype="U8", shape=(3,), data=lambda: [b"abcd"])},
            {},
            {},
            CheckpointError,
            "has 4 bytes where U8",
        ),
        ({"x": TensorBytes(dtype="F7", shape=(1,), data=b"a")}, {}, {}, CheckpointError, "'F7'"),
        ({}, {"x": float("nan")}, {}, CheckpointError, "cannot be written as JSON"),
        ({}, {"x": object()}, {}, CheckpointError, "cannot be written as JSON"),
        ({}, {}, {"../README.md": ""}, CheckpointError, "extra file's name"),
        ({}, {}, {"config.json": ""}, CheckpointError, "extra file's name"),
        (
            {"x": TensorBytes(dtype="U8", shape=(4,), data=explode)},
            {},
            {},
            KeyboardInterrupt,
            "stop",
        ),
    ],
)
def test_a_failure_leaves_nothing_behind(
    tmp_path: Path,
    tensors: dict[str, TensorBytes],
    config: dict[str, object],
    extra: dict[str, str],
    raised: type[BaseException],
    message: str,
) -> None:
    with pytest.raises(raised, match=message):
        write_checkpoint(tmp_path / "out", config, tensors, extra)

    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    kept = [f".eyas-other.{ended.pid}.partial", f".eyas-out.{os.getppid()}.partial", ".eyas-out.x"]
    gone = [f".eyas-out.{ended.pid}.partial", f".eyas-out.{os.getpid()}.partial"]
    for name in kept + gone:
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_text("half")

    write_checkpoint(tmp_path / "out", {}, {})

    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*kept, "out"])


def test_a_refusal_before_the_rename_leaves_nothing(tmp_path: Path) -> None:
    def verify(stage: Path) -> None:
        assert open_checkpoint(stage).config == {"a": 1}
        assert not (tmp_path / "out").exists()
        raise ValueError("not what was meant")

    with pytest.raises(ValueError, match="not what was meant"):
        write_checkpoint(tmp_path / "out", {"a": 1}, {}, verify=verify)

    assert list(tmp_path.iterdir()) == []


def test_what_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="exists already"):
        write_checkpoint(tmp_path / "out", {}, {}, verify=lambda _: (tmp_path / "out").mkdir())

    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("kind", ["directory", "file", "dangling link"])
def test_what_exists_is_never_overwritten(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "out"
    if kind == "directory":
        place.mkdir()
    elif kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to(tmp_path / "nowhere")

    with pytest.raises(CheckpointError, match="exists already"):
        write_checkpoint(place, {}, {})

    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_sparse_drafter_of_many_gigabytes_takes_no_room(tmp_path: Path) -> None:
    headers = {
        "fc.weight": ("BF16", (7168, 21504)),
        "embed_tokens.weight": ("BF16", (163840, 7168)),
        "d2t": ("I64", (2,)),
    }
    place = write_sparse(tmp_path / "kimi", {}, headers, {"d2t": bytes(8) + b"\1" + bytes(7)})

    checkpoint = open_checkpoint(place)
    file = (place / "model.safetensors").stat()
    assert file.st_size > 2_600_000_000
    assert file.st_blocks * 512 < 1_000_000
    assert checkpoint.tensors["fc.weight"].shape == (7168, 21504)
    assert checkpoint.read_integers("d2t") == [0, 1]

    copy = {
        name: TensorBytes(
            dtype=header.dtype, shape=header.shape, data=lambda name=name: checkpoint.chunks(name)
        )
        for name, header in checkpoint.tensors.items()
        if name != "embed_tokens.weight"
    }
    copied = write_checkpoint(tmp_path / "copy", {}, copy)
    assert (copied / "model.safetensors").stat().st_blocks * 512 < 1_000_000
    assert open_checkpoint(copied).read_integers("d2t") == [0, 1]


def test_contents_without_a_header_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="contents but no header for tensor 'd2t'"):
        write_sparse(tmp_path / "out", {}, {}, {"d2t": b""})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 20))
def test_tensors_go_into_the_files_that_the_hubs_library_puts_them_in(
    sizes: list[int], shard_bytes: int
) -> None:
    from huggingface_hub import split_state_dict_into_shards_factory

    tensors = {
        f"t{i}": TensorBytes(dtype="U8", shape=(size,), data=bytes([i + 1]) * size)
        for i, size in enumerate(sizes)
    }
    theirs = split_state_dict_into_shards_factory(
        {name: tensor.data for name, tensor in tensors.items()},
        get_storage_size=len,
        filename_pattern="model{suffix}.safetensors",
        max_shard_size=shard_bytes,
    )
    with tempfile.TemporaryDirectory() as folder:
        place = write_checkpoint(Path(folder) / "d", {}, tensors, shard_bytes=shard_bytes)
        checkpoint = open_checkpoint(place)
        written = {name: header.file for name, header in checkpoint.tensors.items()}
        assert written == theirs.tensor_to_filename
        assert {name: checkpoint.read_bytes(name) for name in tensors} == {
            name: tensor.data for name, tensor in tensors.items()
        }
        assert checkpoint.other_files == ()
        index = place / "model.safetensors.index.json"
        assert index.exists() == theirs.is_sharded
        if theirs.is_sharded:
            assert json.loads(index.read_text()) == {
                "metadata": theirs.metadata,
                "weight_map": theirs.tensor_to_filename,
            }


def test_an_extra_file_may_not_have_the_name_of_a_shard(tmp_path: Path) -> None:
    tensors = {n: TensorBytes(dtype="U8", shape=(1,), data=b"x") for n in "ab"}
    for name in ("model-00002-of-00002.safetensors", "model.safetensors.index.json"):
        with pytest.raises(CheckpointError, match="cannot be an extra file's name"):
            write_checkpoint(tmp_path / "out", {}, tensors, {name: ""}, shard_bytes=1)
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused_while_the_disk_writes_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        # Once told, the kernel does not tell it to who asks next.
        if threading.current_thread() is not threading.main_thread():
            raise OSError(5, "Input/output error")
        sync(descriptor)

    sync = os.fsync
    monkeypatch.setattr(os, "fsync", refuse)
    tensors = {"x": TensorBytes(dtype="U8", shape=(1,), data=b"x")}
    with pytest.raises(CheckpointError, match="cannot be written: input/output error"):
        write_checkpoint(tmp_path / "out", {}, tensors)
    assert list(tmp_path.iterdir()) == []
