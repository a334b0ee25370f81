"""Spans: copied by the kernel or by hand, with their holes, or one sentence."""

from __future__ import annotations

import errno
import os
import random
from io import FileIO
from pathlib import Path

import pytest

from eyas.checkpoint import Span, TensorBytes, open_checkpoint, spans, write_checkpoint
from eyas.checkpoint.same_bytes import same_spans
from eyas.checkpoint.spans import copy_span, data_runs
from eyas.errors import CheckpointError

PAGE = 4096
HOLE = 40 * PAGE


@pytest.fixture(params=["kernel", "no such call", "another file system", "nothing copied"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By which way bytes are copied: all of them have to come to the same."""

    def unable(*_: object) -> int:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    if request.param == "no such call":
        monkeypatch.delattr(os, "copy_file_range")
    elif request.param == "another file system":
        monkeypatch.setattr(os, "copy_file_range", unable)
    elif request.param == "nothing copied":
        monkeypatch.setattr(os, "copy_file_range", lambda *_: 0)
    return str(request.param)


def sparse(path: Path, seed: int = 0) -> bytes:
    """A file of data, a hole, data, and a hole at its end; returns what it reads as."""
    data = random.Random(seed).randbytes(5 * PAGE)
    with path.open("wb") as file:
        file.write(data)
        file.seek(HOLE, os.SEEK_CUR)
        file.write(data)
        file.truncate(2 * len(data) + 2 * HOLE)
    return data + bytes(HOLE) + data + bytes(HOLE)


def copied(source: Path, start: int, nbytes: int, target: Path, at: int) -> list[int]:
    told: list[int] = []
    with FileIO(target, "w") as out:
        out.truncate(at + nbytes)
        copy_span(Span(source, start), nbytes, out, at, told.append)
    return told


@pytest.mark.parametrize(("start", "at"), [(0, 0), (100, 7), (5 * PAGE - 3, 0), (9 * PAGE, 1)])
def test_any_part_is_copied_to_any_place(tmp_path: Path, way: str, start: int, at: int) -> None:
    raw = sparse(tmp_path / "source")
    for nbytes in (0, 1, 3 * PAGE, len(raw) - start):
        told = copied(tmp_path / "source", start, nbytes, tmp_path / "target", at)
        assert (tmp_path / "target").read_bytes() == bytes(at) + raw[start : start + nbytes], way
        assert sum(told) == nbytes
        assert same_spans(Span(tmp_path / "source", start), Span(tmp_path / "target", at), nbytes)


def test_holes_stay_holes(tmp_path: Path, way: str) -> None:
    raw = sparse(tmp_path / "source")
    room = (tmp_path / "source").stat().st_blocks
    assert room * 512 <= len(raw) - HOLE  # else this file system has none, and nothing is shown
    copied(tmp_path / "source", 0, len(raw), tmp_path / "target", 0)
    assert (tmp_path / "target").stat().st_blocks <= room, way


def test_where_holes_are_not_told_everything_is_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = sparse(tmp_path / "source")
    monkeypatch.delattr(os, "SEEK_DATA")
    with FileIO(tmp_path / "source", "r") as file:
        assert list(data_runs(file, 3, len(raw))) == [(3, len(raw))]
    copied(tmp_path / "source", 0, len(raw), tmp_path / "target", 0)
    assert (tmp_path / "target").read_bytes() == raw


def test_what_both_know_as_a_hole_is_not_read_and_all_else_is(tmp_path: Path) -> None:
    raw = sparse(tmp_path / "sparse")
    (tmp_path / "dense").write_bytes(raw)
    one, other = Span(tmp_path / "sparse", 0), Span(tmp_path / "dense", 0)
    for left, right in ((one, other), (other, one), (one, one)):
        assert same_spans(left, right, len(raw))
    for position in (0, 5 * PAGE - 1, 5 * PAGE, 5 * PAGE + HOLE // 2, len(raw) - 1):
        changed = bytearray(raw)
        changed[position] ^= 1
        (tmp_path / "dense").write_bytes(changed)
        assert not same_spans(one, other, len(raw)), position
        assert not same_spans(other, one, len(raw)), position
        assert same_spans(one, other, position)


@pytest.mark.parametrize("ends", [0, 3 * PAGE, 5 * PAGE, 6 * PAGE])
def test_a_source_that_ends_too_soon_is_one_sentence(tmp_path: Path, way: str, ends: int) -> None:
    raw = sparse(tmp_path / "source")
    os.truncate(tmp_path / "source", ends)
    with pytest.raises(CheckpointError, match=f"source has {ends} bytes where {len(raw)} are"):
        copied(tmp_path / "source", 0, len(raw), tmp_path / "target", 0)


def test_a_source_that_is_cut_between_two_pieces_is_one_sentence(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "_AT_ONCE", PAGE)
    raw = sparse(tmp_path / "source")

    def cut(count: int) -> None:
        if count:
            os.truncate(tmp_path / "source", 2 * PAGE)

    with (
        FileIO(tmp_path / "target", "w") as out,
        pytest.raises(CheckpointError, match="source has 8192 bytes"),
    ):
        copy_span(Span(tmp_path / "source", 0), len(raw), out, 0, cut)


def test_a_source_that_is_missing_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read: no such file"):
        copied(tmp_path / "nowhere", 0, 1, tmp_path / "target", 0)


def test_what_the_disk_refuses_is_not_tried_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "copy_file_range", full)
    (tmp_path / "source").write_bytes(b"abc")
    tensor = TensorBytes(dtype="U8", shape=(3,), data=Span(tmp_path / "source", 0))
    with pytest.raises(CheckpointError, match="cannot be written: no space left on device"):
        write_checkpoint(tmp_path / "out", {}, {"x": tensor})
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_checkpoint_is_written_from_spans_and_told_of(tmp_path: Path, way: str) -> None:
    raw = sparse(tmp_path / "source")
    told: list[int] = []
    tensors = {
        "a": TensorBytes(dtype="U8", shape=(PAGE,), data=Span(tmp_path / "source", 5)),
        "b": TensorBytes(dtype="I16", shape=(2, 3), data=Span(tmp_path / "source", 1)),
        "c": TensorBytes(dtype="U8", shape=(3,), data=b"abc"),
        "d": TensorBytes(dtype="U8", shape=(3,), data=lambda: [b"a", b"\0\0"]),
        "e": TensorBytes(dtype="U8", shape=(3,), data=None),
    }
    place = write_checkpoint(tmp_path / "out", {}, tensors, progress=told.append)
    written = open_checkpoint(place)
    read = {name: written.read_bytes(name) for name in tensors}
    expected = {"c": b"abc", "d": b"a\0\0", "e": bytes(3)}
    assert read == {"a": raw[5 : 5 + PAGE], "b": raw[1:13], **expected}, way
    assert sum(told) == PAGE + 12 + 9
