"""plan(): the way to the goal, or a refusal that names the engines that could serve it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eyas.convert.goal import Goal
from eyas.convert.objection import TargetNeededError
from eyas.convert.plan import Plan
from eyas.convert.search import search
from eyas.convert.wishes import NO_WISHES, Wishes
from eyas.engines import ENGINES, EngineRef
from eyas.errors import ConversionError, EyasError

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts
    from eyas.engines import Launch


def plan(
    checkpoint: Checkpoint,
    goal: Goal,
    *,
    target: TargetFacts | None = None,
    launch: Launch | None = None,
    wishes: Wishes = NO_WISHES,
) -> Plan:
    """The first way of writing `checkpoint` in which `goal` computes what was trained.

    Raises EngineError for an engine or version that eyas does not know, and ConversionError when
    there is no such way: with all that stands in the way of the nearest one, and the newest engines
    for which there is one.
    """
    try:
        return search(checkpoint, goal, target=target, launch=launch, wishes=wishes)
    except TargetNeededError:
        raise
    except ConversionError as error:
        others = ", ".join(map(str, _others(checkpoint, goal, target, wishes)))
        if not others:
            raise
        able = f"it can be written for {others}"
        raise ConversionError(f"{error.message}; {able}", hint=error.hint) from None


def _others(
    checkpoint: Checkpoint, goal: Goal, target: TargetFacts | None, wishes: Wishes
) -> Iterator[EngineRef]:
    """The newest version of each engine, in each of its runners, for which there is a way."""
    for engine in ENGINES:
        for runner in engine.runners or (None,):
            ref = EngineRef(name=engine.name, version=engine.newest, runner=runner)
            if ref == goal:
                continue
            try:
                search(checkpoint, ref, target=target, wishes=wishes)
            except EyasError:
                continue
            yield ref
