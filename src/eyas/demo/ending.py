"""The end of the story: what was expected of the drafter, against what engines would get of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eyas.checks.render import Style
from eyas.checks.render.columns import columns
from eyas.decode.answers import Answers
from eyas.decode.curve import Curve, bars, span
from eyas.decode.picture import draw

Measured = Mapping[str, tuple[Answers, ...]]
TITLE = "Expected against as served"


def curves(measured: Measured) -> list[Curve]:
    """Acceptance by draft position of everything that the acts measured."""
    return [
        Curve.of(label, [answers.acceptance for answers in found])
        for label, found in measured.items()
    ]


def text(measured: Measured, style: Style) -> str:
    """A table and bars; a range is over the fills of matrices that the engine never fills."""
    drawn = curves(measured)
    steps = max((curve.positions for curve in drawn), default=0)
    rows = [["", "tau", *(f"draft {k + 1}" for k in range(steps))]]
    for curve, found in zip(drawn, measured.values(), strict=True):
        taus = [answers.tau for answers in found]
        shares = (curve.share(k) for k in range(curve.positions))
        rows.append([curve.label, span(min(taus), max(taus), "{:.2f}"), *shares])
    parts = (
        style.paint(style.fit(TITLE), "bold"),
        style.fit(columns(rows, indent="   ")),
        "",
        bars(drawn, style),
    )
    return "\n".join(parts)


def picture(measured: Measured, file: Path) -> None:
    """The same bars as a picture; UsageError when it cannot be written."""
    prompts = min(len(found[0].prompts) for found in measured.values())
    draw(
        curves(measured),
        file,
        title=f"{TITLE}: one drafter, the same weights",
        subtitle=f"SmolLM2-135M-Instruct, greedy, float32, {prompts} prompts",
    )
