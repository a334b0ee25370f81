"""The case folders: what check says of each, and that none of the rules goes without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.checks.case_files import CASES, FOLDERS, expectation, judged

from eyas.checks import NO_TARGET, RULES, Outcome, Report
from eyas.checks.rules.values import NO_VALUES

pytestmark = pytest.mark.usefixtures("unsynced")

CODES = {rule.code for rule in RULES}
# Every kind of failure of which files can tell something, as public reports were sorted into them.
KINDS = json.loads((CASES / "kinds.json").read_text())
ABOUT_TARGET = {f"T70{i}" for i in range(1, 4)}  # what every drafter is held against


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_case(folder: Path, tmp_path: Path) -> None:
    expected, report = expectation(folder), judged(folder, tmp_path)

    assert findings(report) == expected["findings"]
    assert skipped(report) == expected.get("skipped", {})
    assert all(f.effect and f.help for f in report.findings)
    # An engine that could not be judged at all would leave its findings out.
    assert not [e.label for e in report.engines if e.outcome is Outcome.SKIP]


def test_every_rule_has_a_case_that_fails_and_one_that_passes() -> None:
    found = {code for folder in FOLDERS for code in codes(folder)}
    assert found == CODES
    silent = {about(folder) for folder in FOLDERS if about(folder) not in codes(folder)}
    assert silent == CODES
    assert {about(folder) for folder in FOLDERS} == CODES


def test_every_kind_of_failure_is_caught() -> None:
    names = {folder.name: folder for folder in FOLDERS}
    static = [*range(1, 19), *range(20, 25), 26, 30, 32]
    assert [kind["kind"] for kind in KINDS] == [f"K{i}" for i in static]
    for kind in KINDS:
        assert set(kind["rules"]) <= CODES
        caught = {code for name in kind["cases"] for code in codes(names[name])}
        assert set(kind["rules"]) <= caught, kind["kind"]


def about(folder: Path) -> str:
    """The code of the rule that a case was made for."""
    return folder.name.partition("-")[0].upper()


def codes(folder: Path) -> set[str]:
    """The codes of all findings that a case expects."""
    return {code for found in expectation(folder)["findings"].values() for code in found}


def findings(report: Report) -> dict[str, Any]:
    """Engine, or "files", → code → the worst severity."""
    found: dict[str, dict[str, str]] = {}
    for finding in sorted(report.findings, key=lambda f: f.severity.weight):
        runner = f":{finding.runner}" if finding.runner else ""
        engine = f"{finding.engine}@{finding.version}{runner}" if finding.engine else "files"
        found.setdefault(engine, {})[finding.code] = finding.severity.value
    return found


def skipped(report: Report) -> dict[str, list[str]]:
    """Engine, or "files", → codes that could not run, but for those that always ask for more."""
    found: dict[str, list[str]] = {}
    for skip in report.skipped:
        code = skip.check.partition(" ")[0]
        if skip.reason == NO_VALUES or (skip.reason == NO_TARGET and code in ABOUT_TARGET):
            continue
        found.setdefault(skip.engine or "files", []).append(code)
    return found
