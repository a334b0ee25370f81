"""Rule: one named difference to look for.

The docstring of a rule is what `eyas explain CODE` prints. Its headings are fixed: What it checks,
Why it matters, How to fix it, Example.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from inspect import cleandoc
from typing import ClassVar

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.view import Trained, View
from eyas.errors import one_line

NO_TARGET = "no --target"  # why a check that needs the target did not run


class Rule(ABC):
    """What every rule has: a code that is never reused, a name, a usual severity and an effect."""

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity] = Severity.ERROR
    effect: ClassVar[str]

    @property
    def title(self) -> str:
        """Code and name, as a report names the rule."""
        return f"{self.code} {self.name}"

    @classmethod
    def explanation(cls) -> str:
        """The text that `eyas explain` prints."""
        return cleandoc(cls.__doc__ or "")

    def skip(self, reason: str, *, engine: str | None = None) -> Skip:
        """The statement that this rule could not run."""
        return Skip(check=self.title, engine=engine, reason=one_line(reason))


class TrainedRule(Rule):
    """A rule about the checkpoint alone, or about it and its target."""

    def findings(self, trained: Trained) -> Iterator[Finding | Skip]:
        """What is wrong with `trained`, whatever engine serves it."""
        return self._look(trained)

    @abstractmethod
    def _look(self, trained: Trained) -> Iterator[Finding | Skip]: ...

    def finding(
        self,
        *,
        place: str,
        message: str,
        expected: str,
        found: str,
        advice: str,
        severity: Severity | None = None,
        source: str | None = None,
    ) -> Finding:
        """A finding of this rule; `source` is where the engine that it speaks of is read."""
        return Finding(
            code=self.code,
            name=self.name,
            severity=self.severity if severity is None else severity,
            engine=None,
            version=None,
            runner=None,
            place=one_line(place),
            message=one_line(message),
            expected=None if expected is None else one_line(expected),
            found=one_line(found),
            effect=self.effect,
            help=one_line(advice),
            source=source,
        )


class ViewRule(Rule):
    """A rule about what one engine makes of a checkpoint."""

    def findings(self, view: View) -> Iterator[Finding | Skip]:
        """How what `view` serves differs from what was trained."""
        return self._look(view)

    @abstractmethod
    def _look(self, view: View) -> Iterator[Finding | Skip]: ...

    def finding(
        self,
        view: View,
        *,
        place: str,
        message: str,
        expected: str | None,
        found: str,
        advice: str,
        source: str | None,
        effect: str | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """A finding of this rule about the engine of `view`."""
        return Finding(
            code=self.code,
            name=self.name,
            severity=self.severity if severity is None else severity,
            engine=view.served.engine,
            version=view.served.version,
            runner=view.served.runner,
            place=one_line(place),
            message=one_line(message),
            expected=None if expected is None else one_line(expected),
            found=one_line(found),
            effect=self.effect if effect is None else effect,
            help=one_line(advice),
            source=source,
        )
