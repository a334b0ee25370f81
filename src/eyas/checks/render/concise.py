"""The report for grep: one line for each finding, and the summary."""

from __future__ import annotations

from eyas.checks.render.style import PLAIN, Style
from eyas.checks.render.summary import summary, unchecked, verdict
from eyas.checks.report import Report


def render(report: Report, style: Style = PLAIN) -> str:
    """One line for each finding, each thing that was not checked, the verdict and the count."""
    lines = []
    for found in report.findings:
        head = style.paint(f"{found.severity}[{found.code}]", found.severity.value)
        lines.append(f"{found.place}: {head} {found.name}: {found.message}")
    lines += [*unchecked(report), verdict(report, style), summary(report)]
    return style.fit("\n".join(lines) + "\n")
