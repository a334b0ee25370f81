"""The report in SARIF 2.1.0, which code scanners of forges and editors read.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from eyas.__about__ import __version__
from eyas.checks.finding import Finding, Severity
from eyas.checks.render.merging import evidence
from eyas.checks.render.place import file_of, uri_of
from eyas.checks.render.summary import unchecked
from eyas.checks.report import ErrorText, Outcome, Report
from eyas.checks.rules import RULES, Rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_INDEX = {rule.code: index for index, rule in enumerate(RULES)}


def render(report: Report) -> str:
    """The report as one SARIF log of one run."""
    return _log(_run(report))


def render_error(error: ErrorText) -> str:
    """A run that failed, and why: no results, and no claim that there are none."""
    hint = "" if error.hint is None else f"; {error.hint}"
    told = {"level": "error", "message": {"text": error.message + hint}}
    invocation = {"executionSuccessful": False, "toolExecutionNotifications": [told]}
    return _log({"tool": _tool(), "invocations": [invocation]})


def _log(run: dict[str, Any]) -> str:
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _tool() -> dict[str, Any]:
    rules = [_descriptor(rule) for rule in RULES]
    return {"driver": {"name": "eyas", "version": __version__, "rules": rules}}


def _run(report: Report) -> dict[str, Any]:
    return {
        "tool": _tool(),
        "invocations": [
            {
                "executionSuccessful": report.judged,
                "toolExecutionNotifications": _notifications(report),
            }
        ],
        "artifacts": [
            {
                "location": {"uri": uri_of(report.subject, file.name)},
                "length": file.bytes,
                **({} if file.sha256 is None else {"hashes": {"sha-256": file.sha256}}),
            }
            for file in report.subject.files
        ],
        "results": [_result(found, report) for found in report.findings],
        "properties": {
            "engines": {engine.label: engine.outcome.value for engine in report.engines},
            "unchecked": list(unchecked(report)),
        },
    }


def _descriptor(rule: Rule) -> dict[str, Any]:
    text = rule.explanation()
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": text.splitlines()[0]},
        "fullDescription": {"text": text.splitlines()[0]},
        "help": {"text": text},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _notifications(report: Report) -> list[dict[str, Any]]:
    """What was not checked, so that an empty list of results is not read as a pass."""
    engines = [
        {"level": "warning", "message": {"text": f"not checked: {e.label}: {e.reason}"}}
        for e in report.engines
        if e.outcome is Outcome.SKIP
    ]
    return engines + [
        {
            "level": "note",
            "message": {
                "text": f"not run{'' if skip.engine is None else f' for {skip.engine}'}:"
                f" {skip.check}: {skip.reason}"
            },
            "associatedRule": _reference(skip.check.partition(" ")[0]),
        }
        for skip in report.skipped
    ]


def _reference(code: str) -> dict[str, Any]:
    return {"id": code, "index": _INDEX[code]} if code in _INDEX else {"id": code}


def _result(found: Finding, report: Report) -> dict[str, Any]:
    file, name = file_of(found, report), found.place.rpartition(" :: ")[2]
    key = "\n".join((found.code, found.label or "", found.place))
    return {
        "ruleId": found.code,
        **({"ruleIndex": _INDEX[found.code]} if found.code in _INDEX else {}),
        "level": _LEVELS[found.severity],
        "message": {"text": f"{found.message}. {_sentences(found)}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri_of(report.subject, file)},
                    "region": {"startLine": 1},  # GitHub shows no result without one
                },
                "logicalLocations": [{"name": name, "fullyQualifiedName": found.place}],
            }
        ],
        "partialFingerprints": {"place/v1": sha256(key.encode(errors="replace")).hexdigest()},
        "properties": {
            "engine": found.engine,
            "version": found.version,
            "runner": found.runner,
            "source": found.source,
        },
    }


def _sentences(found: Finding) -> str:
    lines = [f"Evidence: {evidence(found)}.", f"Effect: {found.effect}."]
    if found.severity is not Severity.INFO:
        lines.append(f"Help: {found.help}")
    return " ".join(lines)
