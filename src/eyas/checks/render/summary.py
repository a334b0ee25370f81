"""What every format for readers says besides the findings: verdict, what was not run, the count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from eyas.checks.finding import Severity
from eyas.checks.render.style import PLAIN, Style
from eyas.checks.report import Outcome, Report

_KINDS = {Outcome.FAIL: "error", Outcome.WARN: "warning", Outcome.PASS: "good", Outcome.SKIP: "dim"}
# In the order in which a reader wants to know.
_SAID = {
    Outcome.FAIL: "fail",
    Outcome.WARN: "warn",
    Outcome.PASS: "pass",
    Outcome.SKIP: "not checked",
}


def verdict(report: Report, style: Style = PLAIN) -> str:
    """Each outcome with its engines: ``fail: sglang 0.5.11 · pass: vllm 0.33.0``."""
    groups: dict[Outcome, list[str]] = {}
    for engine in report.engines:
        groups.setdefault(engine.outcome, []).append(engine.label)
    text = " · ".join(f"{_SAID[o]}: {', '.join(groups[o])}" for o in _SAID if o in groups)
    lines = style.wrap_list(text.split(", "), ", ", indent="  ")
    for outcome in groups:
        said = f"{_SAID[outcome]}:"
        lines = lines.replace(said, style.paint(said, _KINDS[outcome]), 1)
    return lines


def unchecked(report: Report) -> Iterator[str]:
    """A line for each engine that was not checked, and for each reason that checks did not run."""
    for engine in report.engines:
        if engine.outcome is Outcome.SKIP:
            yield f"not checked: {engine.label}: {engine.reason}"
    checks: dict[tuple[str, str | None], list[str]] = {}
    for skip in report.skipped:
        checks.setdefault((skip.reason, skip.engine), []).append(skip.check)
    engines: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (reason, name), names in checks.items():
        engines.setdefault((reason, tuple(names)), []).extend([] if name is None else [name])
    for (reason, titles), whose in engines.items():
        whom = f" for {', '.join(whose)}" if whose else ""
        yield f"not run{whom} ({reason}): {', '.join(titles)}"
    if report.left_out:
        yield f"left out by --select or --ignore: {', '.join(report.left_out)}"


def summary(report: Report) -> str:
    """``1 error, 0 warnings; 3 checks not run (no --target)``."""
    errors, warnings = report.count(Severity.ERROR), report.count(Severity.WARNING)
    text = f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')}"
    notes = report.count(Severity.INFO)
    if notes:
        text += f", {_counted(notes, 'note')}"
    general = Counter(skip.reason for skip in report.skipped if skip.engine is None)
    for reason, count in general.items():
        text += f"; {_counted(count, 'check')} not run ({reason})"
    special = Counter(skip.check for skip in report.skipped if skip.engine is not None)
    for check, count in special.items():
        text += f"; {check} not run for {_counted(count, 'engine')}"
    if report.left_out:
        text += f"; {_counted(len(report.left_out), 'check')} left out"
    unread = sum(e.outcome is Outcome.SKIP for e in report.engines)
    if unread:
        text += f"; {_counted(unread, 'engine')} not checked"
    return text


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
