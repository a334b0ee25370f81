"""Report: the outcome of a check, and the shape of its JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from eyas.checks.finding import Finding, Severity, Skip, label_of
from eyas.spec import Fate, Landing

SCHEMA_VERSION = 1


class Outcome(StrEnum):
    """What became of the check of one engine."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many of the tensors that are meant to land do so wholly.

    A tensor that an engine leaves out by design (t2d) is in neither number.
    """

    landed: int
    total: int

    @classmethod
    def of(cls, landing: Landing) -> Coverage:
        """The coverage of `landing`."""
        meant = [t for t in landing.tensors if t.fate is not Fate.IGNORED]
        whole = [t for t in meant if t.fate is not Fate.LOST and t.cut == 0]
        return cls(landed=len(whole), total=len(meant))


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOutcome:
    """The verdict for one engine; `reason` says why it was skipped or that it refuses."""

    engine: str
    version: str
    runner: str | None
    outcome: Outcome
    coverage: Coverage | None
    reason: str | None

    @property
    def label(self) -> str:
        """The engine as a reader names it."""
        return label_of(self.engine, self.version, self.runner)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """A file of the subject. `sha256` is given for the small ones: weights are not read whole."""

    name: str
    bytes: int
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The drafter that was checked."""

    path: str
    revision: str | None
    dialect: str
    files: tuple[CheckedFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The program that wrote the report."""

    name: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that a check found, and what it could not look at.

    `skipped` is what could not be checked, `left_out` (``code name``) what the caller did not ask
    for. Within a schema version keys may be added; their meaning never changes.
    """

    schema_version: int
    tool: Tool
    subject: Subject
    target: str | None
    target_revision: str | None = None
    engines: tuple[EngineOutcome, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[Skip, ...]
    left_out: tuple[str, ...]

    def count(self, severity: Severity) -> int:
        """The number of findings of `severity`."""
        return sum(f.severity is severity for f in self.findings)

    @property
    def judged(self) -> bool:
        """Whether at least one engine could be judged."""
        return any(e.outcome is not Outcome.SKIP for e in self.engines)

    def exit_code(self, *, fail_on: Severity = Severity.ERROR, strict: bool = False) -> int:
        """0 nothing at or above `fail_on`, 1 findings (or a skip, if `strict`), 2 not judged."""
        if not self.judged:
            return 2
        if any(f.severity.weight >= fail_on.weight for f in self.findings):
            return 1
        if fail_on is not Severity.ERROR and any(e.outcome is Outcome.WARN for e in self.engines):
            return 1
        unchecked = bool(self.skipped) or any(e.outcome is Outcome.SKIP for e in self.engines)
        return 1 if strict and unchecked else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorText:
    """Why there is no report: what went wrong, and what to type next."""

    kind: str
    message: str
    hint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDocument:
    """What is written in place of a report when there is none."""

    schema_version: int
    error: ErrorText


def outcome_of(findings: Iterable[Finding], skipped: Iterable[Skip] = ()) -> Outcome:
    """The verdict on one engine; a question about it that stayed open is never a pass."""
    worst = max((f.severity.weight for f in findings), default=0)
    if any(skip.engine is not None for skip in skipped):
        worst = max(worst, Severity.WARNING.weight)
    return {0: Outcome.PASS, 1: Outcome.WARN, 2: Outcome.FAIL}[worst]
