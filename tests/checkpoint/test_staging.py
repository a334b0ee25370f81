"""Staging: a directory or a file appears whole, or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from eyas.checkpoint import staged, staging
from eyas.errors import CheckpointError

KINDS = pytest.mark.parametrize("kind", ["directory", "file"])


def write(draft: Path, kind: str, text: str = "whole") -> None:
    if kind == "directory":
        draft.mkdir()
        (draft / "part").write_text(text)
    else:
        draft.write_text(text)


def read(final: Path, kind: str) -> str:
    return (final / "part").read_text() if kind == "directory" else final.read_text()


@KINDS
def test_it_has_its_name_when_it_is_whole(tmp_path: Path, kind: str) -> None:
    final = tmp_path / "made" / "out"
    with staged(final) as draft:
        write(draft, kind)
        assert draft.parent == final.parent
        assert draft.name.startswith(".")
        assert not final.exists()
    assert read(final, kind) == "whole"
    assert [path.name for path in final.parent.iterdir()] == ["out"]


@KINDS
@pytest.mark.parametrize(
    "error", [ValueError("no"), KeyboardInterrupt(), CheckpointError("no")], ids=repr
)
def test_what_raises_leaves_nothing(tmp_path: Path, kind: str, error: BaseException) -> None:
    def attempt() -> None:
        with staged(tmp_path / "made" / "for it" / "out") as draft:
            write(draft, kind)
            raise error

    with pytest.raises(type(error)):
        attempt()
    assert list(tmp_path.iterdir()) == []


def test_what_the_disk_refuses_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for final in (tmp_path / "file" / "out", tmp_path / ("x" * 250)):
        with (
            pytest.raises(CheckpointError, match="cannot be written") as caught,
            staged(final) as draft,
        ):
            write(draft, "file")
        assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@KINDS
def test_what_appears_at_the_last_moment_is_kept(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    final, asked = tmp_path / "out", []

    def require_new(path: Path) -> None:
        asked.append(path)
        if len(asked) == 2:  # the last look before the rename still finds nothing
            write(final, kind, "theirs")
        else:
            look(path)

    look = staging.require_new
    monkeypatch.setattr(staging, "require_new", require_new)
    with pytest.raises(CheckpointError, match="out exists already"), staged(final) as draft:
        write(draft, kind, "ours")

    assert len(asked) == 3
    assert read(final, kind) == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_appears_where_links_are_not_to_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with staged(tmp_path / "out") as draft:
        draft.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


WRITER = """
import sys
from pathlib import Path
from eyas.checkpoint import staged
from eyas.errors import CheckpointError

final, kind, text = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
try:
    with staged(final) as draft:
        if kind == "directory":
            draft.mkdir()
            draft = draft / "part"
        draft.write_text(text)
        print("written", flush=True)
        sys.stdin.readline()
except CheckpointError as error:
    sys.exit(str(error))
"""


def start(final: Path, kind: str, text: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, final, kind, text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    return process


@KINDS
def test_of_two_processes_the_first_has_the_name(tmp_path: Path, kind: str) -> None:
    final = tmp_path / "out"
    processes = [start(final, kind, text) for text in ("one", "other")]
    assert len(list(tmp_path.iterdir())) == 2  # each has its own sibling

    for process in processes:  # both at once
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate(timeout=60)[1] for process in processes]

    codes = [process.returncode for process in processes]
    assert sorted(codes) == [0, 1]
    loser = codes.index(1)
    hint = "name a new one, or remove it first"
    assert told[loser] == f"{final} exists already, and nothing is overwritten; {hint}\n"
    assert read(final, kind) == ("one", "other")[1 - loser]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@KINDS
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path, kind: str) -> None:
    process = start(tmp_path / "out", kind, "half")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert [path.name for path in tmp_path.iterdir()] == [f".eyas-out.{process.pid}.partial"]

    with staged(tmp_path / "out") as draft:
        write(draft, kind)

    assert [path.name for path in tmp_path.iterdir()] == ["out"]
