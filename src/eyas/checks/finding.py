"""Finding: one explained difference between what was trained and what is served."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"  # what is served is not what was trained
    WARNING = "warning"  # it may not be: the files leave it open
    INFO = "info"  # a difference that by itself changes no token

    @property
    def weight(self) -> int:
        """A number that grows with the severity."""
        return {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2}[self]


def label_of(engine: str, version: str, runner: str | None) -> str:
    """An engine as a reader names it: ``sglang 0.5.11``, ``vllm 0.33.0:v2``."""
    return f"{engine} {version}" + ("" if runner is None else f":{runner}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A difference, with its place, its evidence, its cost and its remedy.

    `message` can be read alone. `engine`, `version` and `runner` are None where the finding is
    about the files and not about an engine. `place` is ``file :: name``.
    """

    code: str
    name: str
    severity: Severity
    engine: str | None
    version: str | None
    runner: str | None
    place: str
    message: str
    expected: str | None
    found: str
    effect: str
    help: str
    source: str | None

    @property
    def label(self) -> str | None:
        """The engine as a reader names it; None where the finding is about the files."""
        if self.engine is None or self.version is None:
            return None
        return label_of(self.engine, self.version, self.runner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """A check that did not run, and why: never a pass. `engine` is ``name@version`` or None."""

    check: str
    engine: str | None
    reason: str
