"""What a conversion is for: an engine that shall compute it, or a dialect that shall read it."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.dialects import WRITABLE
from eyas.engines import ENGINES, EngineRef, require_covered
from eyas.engines.suggestion import suggestion
from eyas.errors import UsageError


@dataclass(frozen=True, slots=True)
class DialectGoal:
    """A dialect by its name; `str` of it is what is typed."""

    name: str

    def __str__(self) -> str:
        """The name."""
        return self.name


Goal = EngineRef | DialectGoal


def parse_goal(text: str) -> Goal:
    """The goal that ``ENGINE[@VERSION][:RUNNER]`` or ``DIALECT`` names.

    Without a version it is the newest that eyas knows. Raises UsageError for a name that is neither
    an engine's nor a writable dialect's, EngineError for a version without a contract.
    """
    typed = text.strip()
    name = typed.partition("@")[0].partition(":")[0].lower()
    if typed.lower() in WRITABLE:
        return DialectGoal(typed.lower())
    engine = next((engine for engine in ENGINES if engine.name == name), None)
    if engine is None:
        known = [*(engine.name for engine in ENGINES), *WRITABLE]
        near = suggestion(name, known)
        meant = f"did you mean {near}? " if near else ""
        raise UsageError(
            f"{typed!r} is no engine, and no dialect that eyas writes",
            hint=f"{meant}known: {', '.join(known)}",
        )
    if "@" not in typed:
        typed = f"{name}@{engine.newest}{typed[len(name) :]}"
    ref = EngineRef.parse(typed)
    require_covered(ref)
    return ref
