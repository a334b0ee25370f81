"""Style: colour and characters as the terminal can show them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from shutil import get_terminal_size
from textwrap import fill
from typing import TextIO

from eyas.errors import one_line

_CODES = {"error": "1;31", "warning": "1;33", "info": "1;36", "good": "32", "dim": "2", "bold": "1"}
_ASCII = str.maketrans({"·": "-", "–": "-", "…": "...", "→": "->", "✓": "+", "✗": "x"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """What can be shown: colour codes, characters outside ASCII, and how many in a line.

    `width` is None where nobody looks at the lines: a file or a pipe gets each text in one line.
    """

    color: bool
    unicode: bool
    width: int | None = None

    def paint(self, text: str, kind: str) -> str:
        """`text` in the colour of `kind`: error, warning, info, good, dim or bold."""
        return f"\x1b[{_CODES[kind]}m{text}\x1b[0m" if self.color else text

    def wrap(self, text: str, *, indent: str) -> str:
        """`text` in lines of at most `width`, later ones behind `indent`; words stay whole."""
        if self.width is None or len(text) <= self.width:
            return text
        return fill(
            text,
            width=max(self.width, NARROWEST),
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def wrap_list(self, items: Iterable[str], separator: str, *, indent: str) -> str:
        """`items` in lines of at most `width`, broken between items and never inside one."""
        joined = separator.join(item.replace(" ", _TIE) for item in items)
        return self.wrap(joined, indent=indent).replace(_TIE, " ")

    def fit(self, text: str) -> str:
        """`text` in the characters that can be shown; one that steers the terminal is spelt out."""
        return self.encode(_spelt(text))

    def encode(self, text: str) -> str:
        """`text`, which may be anything, without characters that the stream cannot write."""
        if self.unicode:
            return text.encode("utf-8", "replace").decode("utf-8")  # names on disk may be no text
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


NARROWEST = 40  # below it an indent leaves no room for words
_TIE = "\N{NO-BREAK SPACE}"
PLAIN = Style(color=False, unicode=True)
_PAINT = re.compile(rf"(\x1b\[(?:0|{'|'.join(_CODES.values())})m)")


def _spelt(text: str) -> str:
    r"""`text` with ``\x1b`` for an escape that no `paint` wrote: a drafter's file may hold any."""
    if text.replace("\n", "").isprintable():
        return text
    parts = _PAINT.split(text)
    return "".join(part if i % 2 else _spelt_part(part) for i, part in enumerate(parts))


def _spelt_part(text: str) -> str:
    return "\n".join(map(one_line, text.split("\n")))


def style_for(stream: TextIO, environment: Mapping[str, str], choice: str = "auto") -> Style:
    """The style for `stream`: by `choice`, else by NO_COLOR, FORCE_COLOR and isatty, in this order.

    `choice` is always, never or auto.
    """
    if choice != "auto":
        color = choice == "always"
    elif environment.get("NO_COLOR"):
        color = False
    elif environment.get("FORCE_COLOR"):
        color = True
    else:
        color = stream.isatty()
    width = get_terminal_size().columns if stream.isatty() else None
    return Style(color=color, unicode=_shows_unicode(stream), width=width)


def _shows_unicode(stream: TextIO) -> bool:
    try:
        "✓·→…".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
