"""Objection: what stands against a way of writing a drafter, and the refusal that tells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eyas.convert.goal import DialectGoal, Goal
from eyas.errors import ConversionError
from eyas.spec import Stage


class TargetNeededError(ConversionError):
    """A conversion against which nothing stands that the target's config might not settle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """One reason why what was written is not what was trained.

    `stage` is where the engine stops, None where it serves. `skipped` says that a check could not
    run, `needs_target` that knowing the target could settle it. `unstated` is the place of a key
    that the drafter's config would have to state. `replaced` says that the engine puts the target's
    embedding in the place of the drafter's own.
    """

    text: str
    stage: Stage | None = None
    skipped: bool = False
    needs_target: bool = False
    unstated: str | None = None
    replaced: bool = False

    @property
    def in_drafter(self) -> bool:
        """Whether the drafter contradicts itself, whatever it is written as."""
        return self.skipped or self.stage in (Stage.LOAD, Stage.FIRST_REQUEST)


def refusal(
    location: str,
    against: Sequence[Sequence[Objection]],
    unwritten: Sequence[ConversionError],
    goal: Goal,
) -> ConversionError:
    """The error for a drafter that no writer can write: all that stands against the nearest way.

    `against` holds the objections to each way that could be written, `unwritten` why others could
    not. What the engine makes of a written drafter says more than why another way cannot be
    written, unless the engine cannot even parse that form.
    """
    elsewhere = f"serve it on another engine; ask: eyas check {location} --engine ENGINE@VERSION"
    if isinstance(goal, DialectGoal):
        elsewhere = f"look at what it says of itself: eyas inspect {location}"
    unknown = False
    parsed = [found for found in against if all(o.stage is not Stage.CONFIG for o in found)]
    if unwritten and not parsed:
        reason, hint = unwritten[0].message, unwritten[0].hint or elsewhere
    else:
        nearest = min(parsed or against, key=_distance)
        real = [objection for objection in nearest if not objection.needs_target]
        # What only waits for a target is told where nothing else stands in the way.
        reason = "; ".join(objection.text for objection in real or nearest)
        if not real:
            unknown, hint = True, "name the target with --target"
        elif all(objection.unstated for objection in real):
            hint = f"state {real[0].unstated}, if the drafter has that limit"
        elif any(objection.in_drafter for objection in real):
            hint = f"look at what it says of itself: eyas inspect {location}"
        else:
            hint = elsewhere
    does = "reads" if isinstance(goal, DialectGoal) else "computes"
    kind = TargetNeededError if unknown else ConversionError
    return kind(
        f"{location} cannot be written so that {goal} {does} what was trained: {reason}",
        hint=hint,
    )


def _distance(against: Sequence[Objection]) -> tuple[bool, bool, int]:
    """How far from exact a way of writing is: the fewer in the way the nearer."""
    real = [objection for objection in against if not objection.needs_target]
    # An engine that stops has named only the first thing that is wrong.
    return (len(real) > 0, any(objection.stage for objection in real), len(real))
