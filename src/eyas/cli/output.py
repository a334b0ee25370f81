"""What a command writes: its result to stdout, the next useful command to stderr."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from eyas.cli.options import Color
from eyas.errors import UsageError, reason_of

if TYPE_CHECKING:
    from eyas.checks.render import Style


class ReaderGone(Exception):  # noqa: N818 - no error: `eyas explain | head` has read enough
    """Nobody reads stdout any more."""


def style_of(color: Color) -> Style:
    """The style for stdout."""
    from eyas.checks.render import style_for

    return style_for(sys.stdout, os.environ, color.value)


def result(text: str) -> None:
    """Writes a command's result to stdout, in the characters that it can show.

    Raises ReaderGone when nobody reads it, UsageError where it cannot be written (a full disk).
    """
    try:
        sys.stdout.write(_fitting(text, sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        raise UsageError(
            f"the result cannot be written: {reason_of(error)}", hint="send stdout elsewhere"
        ) from None


def hint(text: str) -> None:
    """Writes the next useful command to stderr."""
    remark(f"next: {text}\n")


def remark(text: str) -> None:
    """Writes to stderr, where it can be written: what is lost there changes no outcome."""
    try:
        sys.stderr.write(_fitting(text, sys.stderr))
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Sends what `stream` still holds nowhere, so that the interpreter's exit says nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def settle() -> None:
    """The last flush of both streams: a reader that is gone by now is no error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            silence(stream)


def _fitting(text: str, stream: TextIO) -> str:
    from eyas.checks.render import style_for

    return style_for(stream, os.environ, "never").encode(text)
