"""Progress on a terminal (a pseudo-terminal) leaves what is written to stdout where it belongs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from io import StringIO, TextIOWrapper
from pathlib import Path

import pytest

from eyas.cli.output import result
from eyas.cli.progress import counted

ACTS = ("1. alone\n", "2. drafted, a line that is longer than the terminal is wide " * 3 + "\n")


class Terminal:
    """Both ends of a pseudo-terminal, and what was shown on it."""

    def __init__(self) -> None:
        self._ours, self._theirs = os.openpty()
        os.set_blocking(self._ours, False)

    def stream(self) -> TextIOWrapper:
        """A stream of a program that runs on this terminal."""
        return os.fdopen(os.dup(self._theirs), "w", encoding="utf-8")

    def shown(self) -> str:
        """Everything that was written so far."""
        return os.read(self._ours, 2**16).decode().replace("\r\n", "\n")

    def close(self) -> None:
        """Give both ends back."""
        os.close(self._ours)
        os.close(self._theirs)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


def play() -> None:
    with counted(quiet=False) as watch:
        for act in ACTS:
            watch("answering", 1)()
            result(act)


def test_a_file_gets_what_the_terminal_is_not_shown(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out.txt"
    with (
        file.open("w") as out,
        terminal.stream() as err,
        # undone before pytest itself looks at the streams again
        monkeypatch.context() as patch,
    ):
        patch.setenv("TERM", "xterm")
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        play()
    assert file.read_text() == "".join(ACTS)
    shown = terminal.shown()
    assert "answering" in shown
    assert "alone" not in shown


def test_a_terminal_shows_the_result_and_the_bar(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with terminal.stream() as out, terminal.stream() as err, monkeypatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        play()
    shown = terminal.shown()
    assert "answering" in shown
    assert "1. alone\n" in shown


def test_off_a_terminal_progress_is_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", lines := StringIO())
    play()
    assert capsys.readouterr().out == "".join(ACTS)
    assert lines.getvalue().startswith("  answering: 1/1, about 0 s left\n")
