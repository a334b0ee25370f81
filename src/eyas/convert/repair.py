"""Whether a conversion would succeed: what a report asks before it advises one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from eyas.checks import Repair
from eyas.convert.search import search
from eyas.errors import EyasError, TargetNeededError

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts


def repair_of(checkpoint: Checkpoint, target: TargetFacts | None) -> Callable[[str], Repair] | None:
    """A function that plans a conversion of `checkpoint` for an engine as it is typed, once each.

    None for a checkpoint on the Hub: a plan reads every integer tensor, each in its own request.
    """
    if checkpoint.remote:
        return None

    @cache
    def repair(engine: str) -> Repair:
        from eyas.engines import EngineRef

        try:
            search(checkpoint, EngineRef.parse(engine), target=target)
        except TargetNeededError:
            return Repair.WITH_TARGET
        except EyasError:
            return Repair.REFUSED
        return Repair.EXACT

    return repair
