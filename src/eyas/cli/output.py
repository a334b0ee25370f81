"""What a command writes: its result to stdout, the next useful command to stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from eyas.cli.options import Color

if TYPE_CHECKING:
    from eyas.check.render import Style


class ReaderGone(Exception):  # noqa: N818 - no error: `eyas explain | head` has read enough
    """Nobody reads stdout any more."""


def style_of(color: Color) -> Style:
    """The style for stdout."""
    import os

    from eyas.check.render import style_for

    return style_for(sys.stdout, os.environ, color.value)


def result(text: str) -> None:
    """Writes a command's result to stdout; raises ReaderGone when nobody reads it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGone from None


def hint(text: str) -> None:
    """Writes the next useful command to stderr."""
    sys.stderr.write(f"next: {text}\n")
