"""One renderer for each output format."""

from __future__ import annotations

from enum import StrEnum

from eyas.check.render.style import PLAIN, Style, style_for
from eyas.check.report import Report


class Format(StrEnum):
    """How a report is written."""

    HUMAN = "human"
    CONCISE = "concise"
    JSON = "json"


def render(report: Report, how: Format, style: Style = PLAIN) -> str:
    """`report` in the format `how`, ending in a newline."""
    from eyas.check.render import concise, human, json

    if how is Format.JSON:
        return json.render(report)
    if how is Format.CONCISE:
        return concise.render(report, style)
    return human.render(report, style)


__all__ = ["PLAIN", "Format", "Style", "render", "style_for"]
