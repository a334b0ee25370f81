"""Acceptance by draft position: one curve a drafter, drawn with bars on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eyas.checks.render import Style
from eyas.decode.acceptance import Acceptance

TITLE = "share of rounds that accepted at least so many drafts"
BAR = 32  # characters of a bar that stands for every round


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Cumulative acceptance at draft positions 1 to K, as a range where runs differ."""

    label: str
    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def of(cls, label: str, records: Sequence[Acceptance]) -> Curve:
        """The range over at least one record of chains of one length; no round means no point."""
        rates = [record.cumulative for record in records if record.rounds]
        return cls(
            label=label,
            low=tuple(min(at) for at in zip(*rates, strict=True)),
            high=tuple(max(at) for at in zip(*rates, strict=True)),
        )

    @property
    def positions(self) -> int:
        """How many draft positions it has: K, or 0 where nothing was measured."""
        return len(self.low)

    def share(self, position: int) -> str:
        """The share at `position` (from 0) in per cent."""
        low, high = _per_cent(self.low[position]), _per_cent(self.high[position])
        return f"{low} %" if low == high else f"{low} to {high} %"


def span(low: float, high: float, form: str) -> str:
    """Two numbers as a range, or as one where they look the same."""
    one, other = form.format(low), form.format(high)
    return one if one == other else f"{one} to {other}"


def _per_cent(share: float) -> str:
    """A share in per cent: never "0" for a few acceptances in many rounds."""
    if share == 0:
        return "0"
    if share < 0.001:
        return "<0.1"
    return f"{100 * share:.1f}" if share < 0.0995 else f"{100 * share:.0f}"


def bars(curves: Sequence[Curve], style: Style) -> str:
    """`curves` beside each other at every position, the certain part of a range in full ink."""
    full, light = ("█", "░") if style.unicode else ("#", "-")
    width = max((len(style.fit(curve.label)) for curve in curves), default=0)
    lines = [TITLE]
    for position in range(max((curve.positions for curve in curves), default=0)):
        for number, curve in enumerate(c for c in curves if position < c.positions):
            head = f"draft {position + 1}" if number == 0 else ""
            certain = round(curve.low[position] * BAR)
            possible = round(curve.high[position] * BAR) - certain
            bar = style.paint(full * certain, "good") + light * possible
            blank = " " * (BAR - certain - possible)
            label = style.fit(curve.label).ljust(width)
            lines.append(f"  {head:<8} {label}  {bar}{blank}  {curve.share(position)}")
    return "\n".join(lines) + "\n"
