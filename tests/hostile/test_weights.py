"""Weight files that are cut off, that lie, or that are no weights."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from eyas import dialects
from eyas.checkpoint import open_checkpoint
from eyas.errors import CheckpointError, EyasError


def entry(dtype: str, shape: Any, start: Any, stop: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def one(**fields: Any) -> dict[str, Any]:
    return {"a": entry("U8", [4], 0, 4) | fields}


@pytest.mark.parametrize(
    ("header", "data", "length"),
    [
        pytest.param(one(), b"abc", None, id="data cut off"),
        pytest.param(one(), b"abcde", None, id="data left over"),
        pytest.param(one(), b"abcd", 5, id="length too short"),
        pytest.param(one(), b"abcd", 10_000, id="length beyond the file"),
        pytest.param(one(), b"abcd", 2**63, id="length absurd"),
        pytest.param(one(), b"abcd", 2**64 - 1, id="length overflows"),
        pytest.param(one(), b"abcd", 0, id="no header"),
        pytest.param(one(shape=[5]), b"abcd", None, id="shape too large"),
        pytest.param(one(dtype="I64"), b"abcd", None, id="type too wide"),
        pytest.param(one(dtype="U9"), b"abcd", None, id="type unknown"),
        pytest.param(one(dtype=None), b"abcd", None, id="type null"),
        pytest.param(one(shape=[-4]), b"abcd", None, id="shape negative"),
        pytest.param(one(shape=[2**62, 2**62]), b"abcd", None, id="shape overflows"),
        pytest.param(one(shape="four"), b"abcd", None, id="shape a text"),
        pytest.param(one(data_offsets=[4, 0]), b"abcd", None, id="offsets reversed"),
        pytest.param(one(data_offsets=[-4, 0]), b"abcd", None, id="offsets negative"),
        pytest.param(one(data_offsets=[1, 5]), b"abcde", None, id="gap before"),
        pytest.param(one(data_offsets=[2**63, 2**63 + 4]), b"abcd", None, id="offsets far away"),
        pytest.param(
            {"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 2, 6)},
            b"abcdef",
            None,
            id="overlap",
        ),
        pytest.param(
            {"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 0, 4)},
            b"abcd",
            None,
            id="the same bytes twice",
        ),
        pytest.param(
            {"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 4, 6)},
            b"abcdef",
            None,
            id="gap between",
        ),
        pytest.param([], b"", None, id="header a list"),
        pytest.param({"a": 1}, b"", None, id="entry a number"),
        pytest.param(b"{", b"", None, id="header not JSON"),
        pytest.param(b"\xff\xfe", b"", None, id="header not UTF-8"),
        pytest.param(b'{"a":' * 50_000, b"", None, id="header nested"),
        pytest.param({"\x1b[2Ja": entry("U8", [4], 0, 4)}, b"abcd", None, id="control characters"),
        pytest.param({"a." * 300: entry("U8", [4], 0, 4)}, b"abcd", None, id="name without end"),
        pytest.param(
            {"\u202ea": entry("U8", [4], 4, 0)}, b"abcd", None, id="a bad name with a bad offset"
        ),
        pytest.param({"__metadata__": {"format": 1}}, b"", None, id="metadata a number"),
    ],
)
def test_a_header_that_lies(
    drafter: Path, refused: Any, raw_file: Any, header: Any, data: bytes, length: int | None
) -> None:
    (drafter / "model.safetensors").write_bytes(raw_file(header, data, length))

    assert "model.safetensors" in refused(drafter, CheckpointError).message


@pytest.mark.parametrize("size", [0, 1, 7, 8, 20])
def test_a_file_cut_off_early(drafter: Path, refused: Any, size: int) -> None:
    file = drafter / "model.safetensors"
    file.write_bytes(file.read_bytes()[:size])

    refused(drafter, CheckpointError)


def test_a_header_of_a_gigabyte_in_a_sparse_file(drafter: Path, refused: Any) -> None:
    with (drafter / "model.safetensors").open("wb") as file:
        file.write((2**30).to_bytes(8, "little"))
        file.truncate(2**31)

    refused(drafter, CheckpointError)


@pytest.mark.parametrize("kind", ["directory", "fifo", "missing", "dangling link"])
def test_weights_that_are_no_file(drafter: Path, refused: Any, kind: str) -> None:
    file = drafter / "model.safetensors"
    file.unlink()
    if kind == "directory":
        file.mkdir()
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "dangling link":
        file.symlink_to(drafter / "nowhere")

    refused(drafter, CheckpointError)


def test_weights_that_may_not_be_read(
    drafter: Path, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def forbidden(path: Path, *args: Any, **options: Any) -> Any:
        if path.name == "model.safetensors":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *args, **options)

    monkeypatch.setattr(Path, "open", forbidden)

    assert "cannot be read" in refused(drafter, CheckpointError).message


def test_random_damage_never_escapes(drafter: Path) -> None:
    file, dice = drafter / "model.safetensors", random.Random(5)
    sound = file.read_bytes()
    outcomes = set()
    for _ in range(400):
        damaged = bytearray(sound)
        for _ in range(dice.randint(1, 4)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        file.write_bytes(
            bytes(damaged[: dice.choice([len(damaged), dice.randrange(len(damaged))])])
        )
        try:
            checkpoint = open_checkpoint(drafter)
            dialects.read(checkpoint)
            for name in checkpoint.tensors:
                assert len(checkpoint.read_bytes(name)) == checkpoint.tensors[name].nbytes
            outcomes.add("read")
        except EyasError as error:
            outcomes.add(type(error).__name__ if error.message.isprintable() else "unprintable")
    assert {"read", "CheckpointError"} <= outcomes
    assert outcomes <= {"read", "CheckpointError", "NotADrafterError"}


def test_a_file_that_shrinks_after_it_was_opened(drafter: Path) -> None:
    checkpoint = open_checkpoint(drafter)
    file = drafter / "model.safetensors"
    os.truncate(file, file.stat().st_size - 90)

    with pytest.raises(CheckpointError, match=r"ends 90 bytes before the end of tensor fc\.weight"):
        checkpoint.read_bytes("fc.weight")
    file.unlink()
    with pytest.raises(CheckpointError, match="no such file"):
        checkpoint.read_bytes("fc.weight")


def test_a_map_of_absurd_size_is_not_read(drafter: Path, raw_file: Any) -> None:
    count = 2**25
    file = drafter / "model.safetensors"
    raw = raw_file({"d2t": entry("I64", [count], 0, 8 * count)})
    file.write_bytes(raw)
    os.truncate(file, len(raw) + 8 * count)

    with pytest.raises(CheckpointError, match="too many for a vocabulary map"):
        open_checkpoint(drafter).read_integers("d2t")
