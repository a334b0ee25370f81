"""Objection: what stands against a way of writing a drafter, and the refusal that tells it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from shlex import quote

from eyas.checks.fold import merge_numbers
from eyas.convert.elsewhere import ask
from eyas.convert.goal import DialectGoal, Goal
from eyas.errors import ConversionError, TargetNeededError, UnjudgedError
from eyas.spec import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """One reason why what was written is not what was trained.

    `stage` is where the engine stops, None where it serves. `skipped` says that a check could not
    run, `unjudged` that no contract is there, `needs_target` that knowing the target could settle
    it. `unstated` is the place of a key that the drafter's config would have to state. `replaced`
    says that the engine puts the target's embedding in the place of the drafter's own. `weight` is
    how many tensors it is about, where that says how far from exact it is.
    """

    text: str
    stage: Stage | None = None
    skipped: bool = False
    unjudged: bool = False
    needs_target: bool = False
    unstated: str | None = None
    replaced: bool = False
    weight: int = 1

    @property
    def in_drafter(self) -> bool:
        """Whether the drafter contradicts itself, whatever it is written as."""
        return self.skipped or self.stage is Stage.LOAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A way of writing that is not exact: what stands against it, or why it cannot be written.

    `order` is lower the more its reason tells of the drafter, and not of the way.
    """

    order: tuple[int, int]
    against: tuple[Objection, ...] = ()
    unwritten: ConversionError | None = None


def refusal(location: str, attempts: Sequence[Attempt], goal: Goal) -> ConversionError:
    """The error for a drafter that no writer can write: all that stands against the nearest way.

    What the engine makes of a written drafter says more than why another way cannot be written,
    unless the engine cannot even parse that form: then the first way in order tells it.
    """
    look = f"look at what it says of itself: eyas inspect {quote(location)}"
    elsewhere = look if isinstance(goal, DialectGoal) else ask(location)
    written = [attempt.against for attempt in attempts if attempt.against]
    parsed = [found for found in written if all(o.stage is not Stage.CONFIG for o in found)]
    first = min(attempts, key=lambda attempt: attempt.order)
    kind: type[ConversionError] = ConversionError
    if not parsed and first.unwritten is not None:
        reason, hint = first.unwritten.message, first.unwritten.hint or elsewhere
    else:
        nearest = min(parsed, key=_distance) if parsed else first.against
        real = [objection for objection in nearest if not objection.needs_target]
        # What only waits for a target is told where nothing else stands in the way.
        reason = "; ".join(_told(objection.text for objection in real or nearest))
        if not real:
            kind, hint = TargetNeededError, "name the target with --target"
            if any(objection.replaced for objection in nearest):
                hint = "name the directory of the target, with its weights, after --target"
        elif all(objection.unjudged for objection in real):
            kind, hint = UnjudgedError, elsewhere
        elif all(objection.unstated for objection in real):
            hint = f"state {real[0].unstated}, if the drafter has that limit"
        elif any(objection.in_drafter for objection in real):
            hint = look
        else:
            hint = elsewhere
    does = "reads" if isinstance(goal, DialectGoal) else "computes"
    return kind(
        f"{location} cannot be written so that {goal} {does} what was trained: {reason}",
        hint=hint,
    )


def _distance(against: Sequence[Objection]) -> tuple[bool, bool, int]:
    """How far from exact a way of writing is: the fewer in the way the nearer."""
    real = [objection for objection in against if not objection.needs_target]
    # An engine that stops has named only the first thing that is wrong.
    stops = any(objection.stage for objection in real)
    return (len(real) > 0, stops, sum(objection.weight for objection in real))


def _told(texts: Iterable[str]) -> list[str]:
    """`texts` with those that differ only in the tensor at their end told as one."""
    names: dict[str, list[str]] = {}
    for text in texts:
        said, _, last = text.rpartition(" ")
        is_name = last.endswith((".weight", ".bias"))
        names.setdefault(said if is_name else text, []).extend([last] if is_name else [])
    return [f"{said} {', '.join(merge_numbers(found))}".rstrip() for said, found in names.items()]
