"""Acceptance by draft position as a picture file. matplotlib is imported when one is drawn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from eyas.decode.curve import Curve
from eyas.errors import UsageError, reason_of

FORMATS = (".png", ".svg", ".pdf")
# Okabe and Ito's colours that can be told apart without red-green vision, darkest contrasts first.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
WIDEST_LABEL = 40  # characters: with a longer one the legend has one column
LETTER = 0.066  # inches, of the legend's and subtitle's type
INK, MUTED, GRID = "#222222", "#555555", "#DDDDDD"


def drawable(file: Path) -> Path:
    """`file`, if a picture can be drawn there; UsageError before anything long is begun."""
    if file.suffix.lower() not in FORMATS:
        raise UsageError(
            f"a picture cannot be written as {file.name!r}", hint=f"end it in {', '.join(FORMATS)}"
        )
    if not file.parent.is_dir():
        raise UsageError(f"the directory of {file} does not exist", hint=f"mkdir -p {file.parent}")
    if not can_draw():
        raise UsageError("a picture needs matplotlib", hint="pip install 'eyas[report]'")
    return file


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(curves: Sequence[Curve], file: Path, *, title: str, subtitle: str) -> None:
    """Draw `curves`, at least one, as groups of bars; `file` appears whole or not at all."""
    from matplotlib.figure import Figure

    positions = max(curve.positions for curve in curves)
    longest = max(len(curve.label) for curve in curves)
    columns = 2 if longest <= WIDEST_LABEL else 1
    rows = -(-len(curves) // columns)
    written = 1.0 + LETTER * max(len(subtitle), columns * (longest + 6))
    wide = min(13.0, max(6.4, written, 1.6 + 0.42 * positions * len(curves)))
    head = 0.75 + 0.23 * rows  # inches over the axes: title, subtitle, legend
    high = head + 3.7
    figure = Figure(figsize=(wide, high), dpi=160)
    left = 0.75 / wide
    axes = figure.add_axes((left, 0.6 / high, 1 - left - 0.2 / wide, 1 - (head + 0.6) / high))
    width = min(0.84 / len(curves), 0.4)
    crowded = positions * len(curves) > 24
    for number, curve in enumerate(curves):
        places = [i + 1 + (number - (len(curves) - 1) / 2) * width for i in range(curve.positions)]
        _bars(axes, curve, places, width, COLORS[number % len(COLORS)], small=crowded)
    _dress(axes, positions)
    figure.text(left, 1 - 0.34 / high, title, fontsize=12, fontweight="bold", color=INK)
    figure.text(left, 1 - 0.57 / high, subtitle, fontsize=9, color=MUTED)
    figure.legend(
        loc="upper left",
        bbox_to_anchor=(left, 1 - 0.63 / high),
        borderpad=0,
        borderaxespad=0.2,
        ncols=columns,
        frameon=False,
        fontsize=9,
        handlelength=1.0,
        labelcolor=INK,
    )
    _save(figure, file)


def _bars(
    axes: Any, curve: Curve, places: list[float], width: float, color: str, *, small: bool
) -> None:
    heights = [100 * (low + high) / 2 for low, high in zip(curve.low, curve.high, strict=True)]
    axes.bar(places, heights, width * 0.9, color=color, label=curve.label, zorder=2)
    for index, place in enumerate(places):
        low, high = 100 * curve.low[index], 100 * curve.high[index]
        if high - low >= 0.5:
            axes.plot([place, place], [low, high], color=INK, linewidth=1.2, zorder=3)
        text = curve.share(index).removesuffix(" %").replace(" to ", "–")
        if small and "–" in text:  # there is no room for two numbers; the line shows the range
            continue
        axes.annotate(
            text,
            (place, high),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=6 if small else 8,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},  # over a grid line
        )


def _dress(axes: Any, positions: int) -> None:
    axes.set_xticks(range(1, positions + 1))
    axes.set_xlim(0.45, positions + 0.55)
    axes.set_xlabel("draft position", color=INK)
    axes.set_ylabel("rounds that accepted at least that many drafts (%)", fontsize=9, color=INK)
    axes.set_ylim(bottom=0, top=max(10.0, axes.get_ylim()[1] * 1.06))
    axes.grid(axis="y", color=GRID, linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=INK)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)


def _save(figure: Any, file: Path) -> None:
    unfinished = file.with_name(f".{file.name}.{os.getpid()}.unfinished")
    try:
        figure.savefig(unfinished, format=file.suffix.lower().removeprefix("."))
        unfinished.replace(file)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise UsageError(f"the picture {file} cannot be written: {reason_of(error)}") from error
