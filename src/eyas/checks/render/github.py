"""The report as GitHub workflow commands: an annotation for each finding.

GitHub shows ten annotations of a kind for each step; the log has them all. What the commands may
not hold as it is comes escaped, so that no name in a checkpoint can be read as a command.
"""

from __future__ import annotations

from eyas.checks.finding import Finding, Severity
from eyas.checks.render.merging import evidence, merged, others
from eyas.checks.render.place import file_of, path_of
from eyas.checks.render.summary import summary, unchecked, verdict
from eyas.checks.report import ErrorText, Report

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = {**_DATA, **str.maketrans({":": "%3A", ",": "%2C"})}


def render(report: Report) -> str:
    """The verdict, each finding and each thing that was not checked, one command a line."""
    where = report.subject.path
    lines = [
        command("notice", f"{verdict(report)}\n{summary(report)}", title=f"eyas check {where}")
    ]
    lines += [_annotation(group, report) for group in merged(report.findings)]
    lines += [command("notice", line, title="eyas: not checked") for line in unchecked(report)]
    return "\n".join(lines) + "\n"


def render_error(error: ErrorText) -> str:
    """Why there is no report, as an annotation."""
    hint = "" if error.hint is None else f"\n{error.hint}"
    return command("error", error.message + hint, title="eyas could not judge") + "\n"


def command(name: str, message: str, **properties: str | None) -> str:
    """One workflow command, escaped."""
    given = ",".join(
        f"{key}={value.translate(_PROPERTY)}" for key, value in properties.items() if value
    )
    return f"::{name}{' ' + given if given else ''}::{message.translate(_DATA)}"


def _annotation(group: list[Finding], report: Report) -> str:
    found, same = group[0], others(group)
    lines = [found.message, f"at {found.place}", evidence(found), f"effect: {found.effect}"]
    if found.severity is not Severity.INFO:
        lines.append(f"help: {found.help}")
    if same:
        lines.append(f"the same with: {same}")
    if found.source:
        lines.append(f"source: {found.source}")
    return command(
        _COMMANDS[found.severity],
        "\n".join(lines),
        file=path_of(report.subject, file_of(found, report)),
        title=f"{found.code} {found.name}",
    )
