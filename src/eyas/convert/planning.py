"""plan(): the way to the goal, or a refusal that names the engines that could serve it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from eyas.convert.elsewhere import ask, instead
from eyas.convert.goal import DialectGoal, Goal
from eyas.convert.plan import Plan
from eyas.convert.search import search
from eyas.convert.wishes import NO_WISHES, Wishes
from eyas.dialects import WRITABLE
from eyas.engines import ENGINES, EngineRef
from eyas.errors import ConversionError, EyasError, TargetNeededError, UnjudgedError

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts
    from eyas.engines import Launch


_ANY_DIALECT = DialectGoal("")


def plan(
    checkpoint: Checkpoint,
    goal: Goal,
    *,
    target: TargetFacts | None = None,
    launch: Launch | None = None,
    wishes: Wishes = NO_WISHES,
    out: str = "OUT",
) -> Plan:
    """The first way of writing `checkpoint` in which `goal` computes what was trained.

    Raises EngineError for an engine or version that eyas does not know, and ConversionError when
    there is no such way: with all that stands in the way of the nearest one, and the newest engines
    or the dialects, for which there is one. Where nothing better is advised, the first of these
    engines is: by the command that writes to `out`, what the user would type for it.
    """
    try:
        return search(checkpoint, goal, target=target, launch=launch, wishes=wishes)
    except TargetNeededError:
        raise
    except UnjudgedError as error:
        reached = _others(checkpoint, _ANY_DIALECT, target, wishes)
        hint = f"name a dialect to convert it to: {_named(reached)}" if reached else error.hint
        raise UnjudgedError(error.message, hint=hint) from None
    except ConversionError as error:
        others = _others(checkpoint, goal, target, wishes)
        if not others:
            raise
        able = f"it can be written {'as' if isinstance(goal, DialectGoal) else 'for'}"
        hint, first = error.hint, others[0]
        if isinstance(first, EngineRef) and hint in (None, ask(checkpoint.location)):
            hint = instead(checkpoint.location, out, first, target, wishes)
        raise ConversionError(f"{error.message}; {able} {_named(others)}", hint=hint) from None


def _others(
    checkpoint: Checkpoint, goal: Goal, target: TargetFacts | None, wishes: Wishes
) -> list[Goal]:
    """The goals of the kind of `goal`, but for it, that can be reached."""
    found = (other for other in _goals(goal) if other != goal)
    return [other for other in found if _reached(checkpoint, other, target, wishes)]


def _named(goals: Iterable[Goal]) -> str:
    return ", ".join(map(str, goals))


def _goals(goal: Goal) -> Iterator[Goal]:
    """The goals of the same kind: every dialect, or each engine's newest version and runners."""
    if isinstance(goal, DialectGoal):
        yield from map(DialectGoal, WRITABLE)
        return
    for engine in ENGINES:
        for runner in engine.runners or (None,):
            yield EngineRef(name=engine.name, version=engine.newest, runner=runner)


def _reached(
    checkpoint: Checkpoint, goal: Goal, target: TargetFacts | None, wishes: Wishes
) -> bool:
    try:
        search(checkpoint, goal, target=target, wishes=wishes)
    except EyasError:
        return False
    return True
