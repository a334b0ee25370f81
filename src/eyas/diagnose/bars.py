"""Acceptance by draft position as bars: each reading beside the others, and what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eyas.decode.curve import Curve
from eyas.diagnose.outcome import Diagnosis, Measure

WIDEST = 58.0  # per cent of the drawing's width that the longest bar has; its number stands beside


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One reading at one position: its share as a text, and lengths in per cent of the width.

    `certain` is reached whatever memory holds, `possible` comes on top with the luckiest fill.
    """

    series: int
    label: str
    share: str
    certain: float
    possible: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The bars at one draft position, counted from 1."""

    position: int
    bars: tuple[Bar, ...]


def curves(found: Diagnosis) -> tuple[Curve, ...]:
    """As trained, on the training states, repaired, as served (over fills of memory), observed."""
    curves = [_curve([found.trained])] if found.trained else []
    if found.training is not None:
        rates = found.training.cumulative
        curves.append(Curve(label="on its training states", low=rates, high=rates))
    if found.repaired is not None:
        curves.append(_curve([found.repaired]))
    if found.served:
        curves.append(_curve(found.served, label=f"as served by {found.engine}"))
    if found.observed_rates is not None:
        rates = found.observed_rates
        curves.append(Curve(label="observed", low=rates, high=rates))
    return tuple(curves)


def groups(found: Diagnosis) -> tuple[Group, ...]:
    """The bars of `found`, position by position."""
    drawn = curves(found)
    longest = max((share for curve in drawn for share in curve.high), default=0.0) or 1.0
    scale = WIDEST / longest
    positions = max((curve.positions for curve in drawn), default=0)
    return tuple(
        Group(
            position=position + 1,
            bars=tuple(
                _bar(number, curve, position, scale)
                for number, curve in enumerate(drawn)
                if position < curve.positions
            ),
        )
        for position in range(positions)
    )


def _bar(number: int, curve: Curve, position: int, scale: float) -> Bar:
    low, high = curve.low[position], curve.high[position]
    return Bar(
        series=number,
        label=curve.label,
        share=curve.share(position),
        certain=low * scale,
        possible=(high - low) * scale,
    )


def _curve(measures: Sequence[Measure], label: str | None = None) -> Curve:
    rates = [measure.rates for measure in measures]
    return Curve(
        label=label or measures[0].label,
        low=tuple(map(min, zip(*rates, strict=True))),
        high=tuple(map(max, zip(*rates, strict=True))),
    )
