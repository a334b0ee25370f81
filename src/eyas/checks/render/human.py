"""The report for a reader: the verdict, the findings with their evidence, what was not checked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from eyas.checks.finding import Finding, Severity
from eyas.checks.render.merging import evidence, merged, others
from eyas.checks.render.style import PLAIN, Style
from eyas.checks.render.summary import summary, unchecked, verdict
from eyas.checks.report import Outcome, Report

MOST_FINDINGS = 20
_WORDS = re.compile(r"[A-Z]\d{3} \S+|\S+")  # a rule's code stays with its name
_BELOW = " " * 5  # under what follows ``   = ``


def render(report: Report, style: Style = PLAIN) -> str:
    """The whole report as text, ending in a newline."""
    parts = [verdict(report, style)]
    groups = merged(report.findings)
    parts += [finding(group, style) for group in groups[:MOST_FINDINGS]]
    parts += more([group[0] for group in groups[MOST_FINDINGS:]])
    parts.append("\n".join(closing(report, style)))
    return style.fit("\n\n".join(parts) + "\n")


def finding(group: list[Finding], style: Style) -> str:
    """One finding: its message, then place, evidence, effect, help and source.

    `group` is the finding for each engine that it is true of. The place and the command are never
    broken over lines: they are there to be copied.
    """
    found = group[0]
    mark, name = f"{found.severity}[{found.code}]", f"{found.name}:"
    first, *rest = style.wrap(f"{mark} {name} {found.message}", indent=_BELOW).splitlines()
    message = style.paint(first[len(mark) + len(name) + 2 :], "bold")
    lines = [f"{style.paint(mark, found.severity.value)} {name} {message}"]
    lines += [style.paint(line, "bold") for line in rest]
    lines.append(f"  --> {found.place}")
    lines.append(style.wrap(f"   = evidence: {evidence(found)}", indent=_BELOW))
    lines.append(style.wrap(f"   = effect: {found.effect}", indent=_BELOW))
    if found.severity is not Severity.INFO:
        lines.append(f"   = help: {found.help}")
    same = others(group)
    if same:
        lines.append(style.wrap(f"   = the same with: {same}", indent=_BELOW))
    if found.source:
        source = style.wrap(f"   = source: {found.source}", indent=_BELOW)
        lines += [style.paint(line, "dim") for line in source.splitlines()]
    return "\n".join(lines)


def more(rest: list[Finding]) -> Iterator[str]:
    """How many findings of each rule are not shown."""
    for (code, name), count in Counter((f.code, f.name) for f in rest).items():
        yield f"and {count} more like this: {code} {name} (all of them: --format concise)"


def closing(report: Report, style: Style) -> Iterator[str]:
    """How much lands in each engine, what was not checked, and the count."""
    landed = [
        f"{engine.label}: {engine.coverage.landed} of {engine.coverage.total}"
        for engine in report.engines
        if engine.coverage is not None
    ]
    if landed:
        landed[0] += " tensors land"
    refused = [
        f"{e.label}: {e.reason}"
        for e in report.engines
        if e.coverage is None and e.reason and e.outcome is not Outcome.SKIP
    ]
    if landed or refused:
        yield style.wrap_list(landed + refused, " · ", indent="  ")
    for line in unchecked(report):
        for part in style.wrap_list(_WORDS.findall(line), " ", indent="  ").splitlines():
            yield style.paint(part, "warning" if line.startswith("not checked") else "dim")
    if report.subject.revision is not None:
        yield f"{report.subject.path} at commit {report.subject.revision}"
    if report.target_revision is not None:
        yield f"{report.target} at commit {report.target_revision}"
    yield style.wrap_list(summary(report).split("; "), "; ", indent="  ")
