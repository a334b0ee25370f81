"""Torch archives whose directory lies, and what torch writes that is no table of plain tensors."""

from __future__ import annotations

import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.checkpoint.torch_archive import (
    PICKLE,
    Lie,
    about,
    archive,
    honest,
    table,
    tensor,
    weights,
)

from eyas.checkpoint import open_checkpoint
from eyas.errors import CheckpointError

SOUND = weights(table(("a", tensor())))


@pytest.fixture
def place(drafter: Path) -> Path:
    """A drafter without weights: a test writes them as a pickle."""
    (drafter / "model.safetensors").unlink()
    return drafter


@pytest.mark.parametrize(
    ("lie", "end", "reason"),
    [
        pytest.param(about("data/0", header=10**6), {}, "is not where the directory", id="far"),
        pytest.param(about("data/0", header=2**32 - 2), {}, "is not where", id="beyond"),
        pytest.param(about("data/0", header=1), {}, "lies over another", id="inside another"),
        pytest.param(about("data/0", header=0), {}, "lies over another", id="the same place"),
        pytest.param(about("data/0", nbytes=25), {}, "lies over another", id="longer"),
        pytest.param(about("byteorder", nbytes=99), {}, "does not end where", id="into the end"),
        pytest.param(about("data/0", nbytes=2**31), {}, "does not end where", id="gigabytes"),
        pytest.param(about("data/0", nbytes=23), {}, "record of 23 bytes", id="shorter"),
        pytest.param(about("data/0", flags=1), {}, "is encrypted", id="encrypted"),
        pytest.param(about("data/0", own_flags=1), {}, "is packed, by its", id="encrypted inside"),
        pytest.param(about("data/0", method=8), {}, "is compressed", id="compressed"),
        pytest.param(about("data/0", packed=20), {}, "is compressed", id="packed"),
        pytest.param(about("data/0", disk=1), {}, "on another disk", id="disk"),
        pytest.param(about("data/0", folder=True), {}, "marked as a folder", id="folder"),
        pytest.param(about("data/0", own_name="archive/data/1"), {}, "another name", id="names"),
        pytest.param(about("data/0", name="archive/data.pkl"), {}, "a record twice", id="twice"),
        pytest.param(about("data/0", name="archive/../0"), {}, "leads elsewhere", id="upwards"),
        pytest.param(about("data/0", name="/etc/passwd"), {}, "leads elsewhere", id="absolute"),
        pytest.param(about("data/0", name="archive/a\\0"), {}, "leads elsewhere", id="backslash"),
        pytest.param(about("data/0", name="archive/a\n0"), {}, "leads elsewhere", id="lines"),
        pytest.param(about("data/0", name="other/data/0"), {}, "in one folder", id="two roots"),
        pytest.param(about("data/0", name="data"), {}, "in one folder", id="no root"),
        pytest.param(honest, {"more": 1}, "fewer records", id="more records"),
        pytest.param(honest, {"more": -1}, "more records", id="fewer records"),
        pytest.param(honest, {"more": 65531}, "zip64", id="as many as zip64 has"),
        pytest.param(honest, {"further": 1}, "is not where it says", id="directory further"),
        pytest.param(honest, {"longer": 1}, "is not where it says", id="directory longer"),
        pytest.param(honest, {"disks": 1}, "no archive of one piece", id="several disks"),
        pytest.param(honest, {"more": 2**40, "zip64": True}, "lists 1099511627780", id="2**40"),
        pytest.param(honest, {"longer": 2**40, "zip64": True}, "in 1099511", id="long directory"),
        pytest.param(honest, {"astray": 1, "zip64": True}, "not where it says", id="end astray"),
        pytest.param(honest, {"astray": 2**63, "zip64": True}, "not where", id="end far astray"),
        pytest.param(honest, {"disks": 1, "zip64": True}, "one piece", id="zip64, several disks"),
        pytest.param(
            about("data/0", header=2**64 - 1), {"zip64": True}, "is not where", id="zip64, far"
        ),
        pytest.param(
            about("data/0", nbytes=2**64 - 1), {"zip64": True}, "does not end", id="zip64, long"
        ),
    ],
)
def test_a_directory_that_lies(
    lie: Lie, end: dict[str, Any], reason: str, place: Path, refused: Any
) -> None:
    (place / PICKLE).write_bytes(archive(SOUND, lie, **end))

    assert reason in refused(place, CheckpointError).message


def test_the_same_archives_are_read_where_they_do_not_lie(place: Path) -> None:
    for raw in (archive(SOUND), archive(SOUND, zip64=True)):
        (place / PICKLE).write_bytes(raw)
        assert open_checkpoint(place).read_bytes("a") == bytes(24)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        pytest.param(archive(SOUND)[:-1], "may be cut off", id="cut off"),
        pytest.param(archive(SOUND)[:40], "may be cut off", id="cut off early"),
        pytest.param(archive(SOUND) + b"\0", "may be cut off", id="longer"),
        pytest.param(b"\0" + archive(SOUND), "is no archive", id="something before it"),
        pytest.param(b"", "is no archive", id="empty"),
        pytest.param(b"PK\3\4", "may be cut off", id="four bytes"),
        pytest.param(archive({"data/0": b""}), "has no data.pkl", id="no data.pkl"),
        pytest.param(archive(SOUND, order="big"), "byte order 'big'", id="big-endian"),
        pytest.param(archive(SOUND, order="x" * 65), "has 65 bytes", id="a long order"),
        pytest.param(archive({**SOUND, "constants.pkl": b""}), "TorchScript", id="TorchScript"),
        pytest.param(archive({**SOUND, ".data/version": b"11"}), "version '11'", id="version"),
    ],
)
def test_an_archive_of_another_kind(raw: bytes, reason: str, place: Path, refused: Any) -> None:
    (place / PICKLE).write_bytes(raw)

    assert reason in refused(place, CheckpointError).message


def _compressed(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in SOUND.items():
            packed.writestr(f"archive/{name}", data)


WRITERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "before 1.6": (
        lambda path: torch.save({"a": torch.zeros(2)}, path, _use_new_zipfile_serialization=False),
        "in the format of torch before 1.6",
    ),
    "nested": (lambda path: torch.save({"model": {"a": torch.zeros(2)}}, path), "under 'model'"),
    "beside a number": (
        lambda path: torch.save({"a": torch.zeros(2), "step": 3}, path),
        "holds a number under 'step'",
    ),
    "transposed": (lambda path: torch.save({"a": torch.zeros(2, 3).t()}, path), "rows do not"),
    "expanded": (lambda path: torch.save({"a": torch.zeros(1).expand(3)}, path), "rows do not"),
    "sparse": (lambda path: torch.save({"a": torch.eye(2).to_sparse()}, path), "a sparse tensor"),
    "conjugated": (
        lambda path: torch.save({"a": torch.zeros(2, dtype=torch.complex64).conj()}, path),
        "conjugates or negates",
    ),
    "double complex": (
        lambda path: torch.save({"a": torch.zeros(2, dtype=torch.complex128)}, path),
        "names 'torch.ComplexDoubleStorage'",
    ),
    "without numbers": (
        lambda path: torch.save({"a": torch.zeros(2, device="meta")}, path),
        "a tensor without numbers",
    ),
    "a module": (lambda path: torch.save(torch.nn.Linear(2, 2), path), "names 'torch.nn.modules"),
    "a tensor alone": (lambda path: torch.save(torch.zeros(2), path), "holds a tensor, and"),
    "a later protocol": (
        lambda path: torch.save({"a": torch.zeros(2)}, path, pickle_protocol=4),
        "the operation FRAME",
    ),
    "compressed": (_compressed, "is compressed"),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_what_torch_writes_and_eyas_does_not_read(kind: str, place: Path, refused: Any) -> None:
    write, reason = WRITERS[kind]
    write(place / PICKLE)

    assert reason in refused(place, CheckpointError).message


@pytest.mark.parametrize("kind", ["before 1.6", "nested"])
def test_the_command_that_saves_it_anew_is_right(kind: str, place: Path, refused: Any) -> None:
    WRITERS[kind][0](place / PICKLE)
    hint = refused(place, CheckpointError).hint
    _, flag, *arguments = shlex.split(hint)
    subprocess.run([sys.executable, flag, *arguments], check=True, capture_output=True)

    assert open_checkpoint(place).read_bytes("a") == bytes(8)
