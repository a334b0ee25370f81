"""Text as its tokens come: whole characters only, and which of them were drafted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

UNFINISHED = "\N{REPLACEMENT CHARACTER}"
Decode = Callable[[Sequence[int]], str]


@dataclass(slots=True, kw_only=True)
class Detokeniser:
    """Turns token ids into text one at a time, holding back a character that is not whole yet.

    `decode` is the tokenizer's, over a list of ids. A few of the ids before the new ones are
    decoded again each time, since a tokenizer may join a token to the one before it.
    """

    decode: Decode
    _ids: list[int] = field(default_factory=list)
    _context: int = 0  # where the ids begin that are decoded again
    _said: int = 0  # how many ids have been turned into text

    def push(self, token: int) -> str:
        """The text that `token` completes; empty while a character lacks bytes."""
        self._ids.append(token)
        before, now = self._texts()
        if now.endswith(UNFINISHED) or len(now) <= len(before):
            return ""
        return self._advance(before, now)

    def finish(self) -> str:
        """What was held back to the end: a character that never became whole."""
        before, now = self._texts()
        return self._advance(before, now)

    def _texts(self) -> tuple[str, str]:
        return self.decode(self._ids[self._context : self._said]), self.decode(
            self._ids[self._context :]
        )

    def _advance(self, before: str, now: str) -> str:
        self._context, self._said = self._said, len(self._ids)
        return now[len(before) :]


@dataclass(slots=True, kw_only=True)
class Marks:
    """Marks drafted text among the target's own, in colour or between brackets.

    `paint` colours a drafted piece; without it a run of drafted pieces stands between `opening`
    and `closing`.
    """

    opening: str
    closing: str
    paint: Callable[[str], str] | None
    _open: bool = False

    def piece(self, text: str, *, drafted: bool) -> str:
        """`text` with what has to stand before it."""
        if not text:
            return ""
        if self.paint is not None:
            return self.paint(text) if drafted else text
        mark = "" if drafted == self._open else (self.opening if drafted else self.closing)
        self._open = drafted
        return mark + text

    def end(self) -> str:
        """What closes the last run."""
        mark = self.closing if self._open else ""
        self._open = False
        return mark
