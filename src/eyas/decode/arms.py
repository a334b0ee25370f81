"""Arms of an evaluation: the drafter as it was trained, and as engines will have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from eyas import engines
from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines import EngineRef, Launch
from eyas.model.drafter import Drafter
from eyas.model.served import Fill, served_drafter
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.spec import Initialisation, Landing, NotChecked, Served, Unfilled

AS_TRAINED = "as trained"
ALONE = "target alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One way to build an arm's drafter. `fill` is None where nothing is left to chance."""

    fill: Fill | None
    drafter: Callable[[], Drafter]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A drafter to be measured, or the reason why there is none.

    `engine` is the engine whose view it is, None for the drafter as it was trained.
    """

    label: str
    engine: EngineRef | None
    builds: tuple[Build, ...]
    refusal: str | None


def as_trained(checkpoint: Checkpoint, target: Target) -> Arm:
    """The arm that everything else is compared with."""
    build = Build(fill=None, drafter=partial(trained_drafter, checkpoint, target))
    return Arm(label=AS_TRAINED, engine=None, builds=(build,), refusal=None)


def as_served(
    ref: EngineRef, checkpoint: Checkpoint, target: Target, facts: TargetFacts, launch: Launch
) -> Arm:
    """The drafter as engine `ref` will have it under `launch`.

    Where the engine leaves matrices uninitialised there is one build a `Fill`. An engine that
    refuses the drafter, or that eyas has no contract for, is an arm without builds.
    """
    label = " ".join((str(ref), *_settings_of(ref, launch)))
    view = engines.read(ref, checkpoint, target=facts, launch=launch)
    if isinstance(view, NotChecked):
        return Arm(label=label, engine=ref, builds=(), refusal=f"not checked: {view.reason}")
    if view.refusal is not None:
        why = f"does not start: {view.refusal.message}"
        return Arm(label=label, engine=ref, builds=(), refusal=why)
    fills = tuple(Fill) if _left_to_chance(view.landing) else (None,)
    builds = tuple(
        Build(fill=fill, drafter=partial(_served, view, checkpoint, target, fill)) for fill in fills
    )
    return Arm(label=label, engine=ref, builds=builds, refusal=None)


def _served(view: Served, checkpoint: Checkpoint, target: Target, fill: Fill | None) -> Drafter:
    return served_drafter(view, checkpoint, target, fill=fill or Fill.ZEROS)


def _left_to_chance(landing: Landing | None) -> bool:
    """Whether part of the drafter holds what construction happened to leave there."""
    if landing is None:
        return False
    chance = (Initialisation.MEMORY, Initialisation.RANDOM)
    sources = (segment.source for p in landing.unfilled for segment in p.segments)
    return any(isinstance(s, Unfilled) and s.initialisation in chance for s in sources)


def _settings_of(ref: EngineRef, launch: Launch) -> Sequence[str]:
    """The launch options that are for `ref`, as ``key=value``."""
    names = {engine.name for engine in engines.ENGINES}
    chosen = []
    for key, value in launch.settings:
        owner, dot, name = key.partition(".")
        if not dot or owner not in names:
            chosen.append(f"{key}={value}")
        elif owner == ref.name:
            chosen.append(f"{name}={value}")
    return chosen
