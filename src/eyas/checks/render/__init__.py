"""One renderer for each output format."""

from __future__ import annotations

from enum import StrEnum

from eyas.checks.render.style import PLAIN, Style, style_for
from eyas.checks.report import ErrorText, Report


class Format(StrEnum):
    """How a report is written."""

    HUMAN = "human"
    CONCISE = "concise"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


def render(report: Report, how: Format, style: Style = PLAIN) -> str:
    """`report` in the format `how`, ending in a newline."""
    from eyas.checks.render import concise, github, human, json, sarif

    match how:
        case Format.JSON:
            return json.render(report)
        case Format.SARIF:
            return sarif.render(report)
        case Format.GITHUB:
            return style.fit(github.render(report))
        case Format.CONCISE:
            return concise.render(report, style)
        case Format.HUMAN:
            return human.render(report, style)


def render_error(error: ErrorText, how: str) -> str | None:
    """`error` in the format called `how`; None for those that readers have, who read stderr."""
    from eyas.checks.render import github, json, sarif

    match how:
        case Format.JSON:
            return json.render_error(error)
        case Format.SARIF:
            return sarif.render_error(error)
        case Format.GITHUB:
            return github.render_error(error)
        case _:
            return None


__all__ = ["PLAIN", "Format", "Style", "render", "render_error", "style_for"]
