"""The report for grep: one line for each finding, and the summary."""

from __future__ import annotations

from eyas.check.render.human import summary, verdict
from eyas.check.render.style import PLAIN, Style
from eyas.check.report import Outcome, Report


def render(report: Report, style: Style = PLAIN) -> str:
    """One line for each finding, each engine that was not checked, the verdict and the count."""
    lines = []
    for found in report.findings:
        head = style.paint(f"{found.severity}[{found.code}]", found.severity.value)
        lines.append(f"{found.place}: {head} {found.name}: {found.message}")
    for engine in report.engines:
        if engine.outcome is Outcome.SKIP:
            lines.append(f"{engine.label}: not checked: {engine.reason}")
    lines += [verdict(report, style), summary(report)]
    return style.fit("\n".join(lines) + "\n")
