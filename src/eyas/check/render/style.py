"""Style: colour and characters as the terminal can show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

_CODES = {"error": "1;31", "warning": "1;33", "info": "1;36", "good": "32", "dim": "2", "bold": "1"}
_ASCII = str.maketrans({"·": "-", "–": "-", "…": "...", "→": "->", "✓": "+", "✗": "x"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Whether to write colour codes, and whether characters outside ASCII can be shown."""

    color: bool
    unicode: bool

    def paint(self, text: str, kind: str) -> str:
        """`text` in the colour of `kind`: error, warning, info, good, dim or bold."""
        return f"\x1b[{_CODES[kind]}m{text}\x1b[0m" if self.color else text

    def fit(self, text: str) -> str:
        """`text` in the characters that can be shown."""
        if self.unicode:
            return text.encode("utf-8", "replace").decode("utf-8")  # names on disk may be no text
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


PLAIN = Style(color=False, unicode=True)


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
    try:
        "✓·→…".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return Style(color=color, unicode=False)
    return Style(color=color, unicode=True)
