from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eyas.checkpoint import whole_file


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "shard.jsonl"
    file.write_text("before")
    with whole_file(file) as unfinished:
        unfinished.write_text("half")
        assert file.read_text() == "before"
        unfinished.write_text("whole")
    assert file.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [file]


def test_what_raises_leaves_nothing(tmp_path: Path) -> None:
    def write() -> None:
        with whole_file(tmp_path / "shard") as unfinished:
            unfinished.write_text("half")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_what_killed_processes_left_is_removed_and_what_others_write_is_not(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    gone = [f"shard.{ended.pid}.unfinished", f"shard.{os.getpid()}.unfinished"]
    kept = [f"shard.{os.getppid()}.unfinished", f"other.{ended.pid}.unfinished", "shard.x.jsonl"]
    for name in gone + kept:
        (tmp_path / name).write_text("half")
    with whole_file(tmp_path / "shard") as unfinished:
        unfinished.write_text("whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, "shard"])
