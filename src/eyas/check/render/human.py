"""The report for a reader: the verdict, the findings with their evidence, what was not checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from eyas.check.finding import Finding, Severity
from eyas.check.render.style import PLAIN, Style
from eyas.check.report import Outcome, Report

MOST_FINDINGS = 20
_KINDS = {Outcome.FAIL: "error", Outcome.WARN: "warning", Outcome.PASS: "good", Outcome.SKIP: "dim"}


def render(report: Report, style: Style = PLAIN) -> str:
    """The whole report as text, ending in a newline."""
    parts = [verdict(report, style)]
    groups = merged(report.findings)
    parts += [finding(group, style) for group in groups[:MOST_FINDINGS]]
    parts += more([group[0] for group in groups[MOST_FINDINGS:]])
    parts.append("\n".join(closing(report, style)))
    return style.fit("\n\n".join(parts) + "\n")


def verdict(report: Report, style: Style) -> str:
    """Each outcome with its engines: ``fail: sglang 0.5.11 · pass: vllm 0.33.0``."""
    groups: dict[Outcome, list[str]] = {}
    for engine in report.engines:
        groups.setdefault(engine.outcome, []).append(engine.label)
    order = (Outcome.FAIL, Outcome.WARN, Outcome.PASS, Outcome.SKIP)
    said = {Outcome.SKIP: "not checked"}
    return " · ".join(
        f"{style.paint(said.get(outcome, outcome.value), _KINDS[outcome])}:"
        f" {', '.join(groups[outcome])}"
        for outcome in order
        if outcome in groups
    )


def merged(findings: tuple[Finding, ...]) -> list[list[Finding]]:
    """`findings`, those together that differ in nothing but the engine."""
    groups: dict[tuple[str | None, ...], list[Finding]] = {}
    for found in findings:
        texts = (found.place, found.message, found.expected, found.found, found.effect, found.help)
        key = (found.code, *(_without_engine(text, found) for text in texts))
        groups.setdefault(key, []).append(found)
    return list(groups.values())


def _without_engine(text: str | None, found: Finding) -> str | None:
    if text is None or found.version is None:
        return text
    return text.replace(found.version, "VERSION").replace(f":{found.runner}", "")


def _label(found: Finding) -> str:
    runner = "" if found.runner is None else f":{found.runner}"
    return f"{found.engine} {found.version}{runner}"


def finding(group: list[Finding], style: Style) -> str:
    """One finding: its message, then place, evidence, effect, help and source.

    `group` is the finding for each engine that it is true of.
    """
    found = group[0]
    head = style.paint(f"{found.severity}[{found.code}]", found.severity.value)
    lines = [f"{head} {found.name}: {style.paint(found.message, 'bold')}"]
    lines.append(f"  --> {found.place}")
    expected = "" if found.expected is None else f"expected {found.expected}; found "
    lines.append(f"   = evidence: {expected}{found.found}")
    lines.append(f"   = effect: {found.effect}")
    if found.severity is not Severity.INFO:
        lines.append(f"   = help: {found.help}")
    if len(group) > 1:
        others = ", ".join(_label(other) for other in group[1:])
        lines.append(f"   = the same with: {others}")
    if found.source:
        lines.append(style.paint(f"   = source: {found.source}", "dim"))
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
        yield " · ".join(landed + refused)
    for engine in report.engines:
        if engine.outcome is Outcome.SKIP:
            yield style.paint(f"not checked: {engine.label}: {engine.reason}", "warning")
    yield summary(report)


def summary(report: Report) -> str:
    """``1 error, 0 warnings; 3 checks not run (no --target)``."""
    errors, warnings = report.count(Severity.ERROR), report.count(Severity.WARNING)
    text = f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')}"
    notes = report.count(Severity.INFO)
    if notes:
        text += f", {_counted(notes, 'note')}"
    general = [skip for skip in report.skipped if skip.engine is None]
    for reason, count in Counter(skip.reason for skip in general).items():
        text += f"; {_counted(count, 'check')} not run ({reason})"
    for skip in report.skipped:
        if skip.engine is not None:
            text += f"; {skip.check} not run for {skip.engine} ({skip.reason})"
    unread = sum(e.outcome is Outcome.SKIP for e in report.engines)
    if unread:
        text += f"; {_counted(unread, 'engine')} not checked"
    return text


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
