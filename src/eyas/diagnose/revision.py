"""Revision: steps that were taken one after another, each judged again beside all the others.

While a second thing is still wrong, the change that looks best may be the wrong one, and the right
one may look like a loss: a flag of the residual makes up for gate and up in each other's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eyas.diagnose.bench import Bench
from eyas.diagnose.causes import CauseId
from eyas.diagnose.change import Change
from eyas.diagnose.difference import Difference, applied
from eyas.diagnose.trial import LEAST, Step, read_as, trial_of
from eyas.diagnose.variant import Variant


def revised(found: Sequence[Step], start: Variant, bench: Bench, steps: int) -> list[Step]:
    """`found` without what the others make needless, and with what ends nearer in its place.

    `start` is the reading before the first of them.
    """
    if len(found) < 2:
        return list(found)
    kept = _needful(found, start, bench, steps)
    for place in range(len(kept) - 1):
        changes = [step.taken.change for step in kept]
        best, end = None, kept[-1].taken.chains
        for other in _instead_of(kept[place]):
            path = [*changes[:place], other, *changes[place + 1 :]]
            seen = read_as(joined(start, path), bench.target, bench.evidence, steps)
            if seen is not None and seen.nearness > end.nearness:
                best, end = path, seen
        if best is not None:
            instead = [step.instead for step in kept]
            kept = walked(best, instead, start, bench, steps) or kept
    return kept


def _needful(found: Sequence[Step], start: Variant, bench: Bench, steps: int) -> list[Step]:
    """`found` without the changes that can be left out at the end, as one that was taken back.

    Captured states are moved one after another, and each step says from where.
    """
    kept = list(found)
    end = found[-1].taken.chains
    again = True
    while again:
        again = False
        for step in reversed(kept):
            change = step.taken.change
            if change.proven or change.cause is CauseId.BOUNDARIES or len(kept) == 1:
                continue
            rest = [other for other in kept if other is not step]
            changes = [other.taken.change for other in rest]
            seen = read_as(joined(start, changes), bench.target, bench.evidence, steps)
            if seen is not None and seen.nearness > end.nearness - LEAST:
                kept, end, again = rest, seen, True
                break
    if len(kept) == len(found):
        return kept
    changes = [step.taken.change for step in kept]
    return walked(changes, [step.instead for step in kept], start, bench, steps) or list(found)


def _instead_of(step: Step) -> list[Change]:
    """What might have been taken instead: the best for each other cause."""
    taken = step.taken.change
    if taken.proven:
        return []
    others: dict[CauseId, Change] = {}
    for change in step.instead:
        if change.cause is not taken.cause:
            others.setdefault(change.cause, change)
    return list(others.values())


def joined(start: Variant, changes: Sequence[Change]) -> Variant:
    """`start` with all of `changes`, each as it is in the variant that it was tried in."""
    variant = start
    for change in changes:
        part = Difference(
            cause=change.cause, what=change.what, facets=change.facets, roles=change.roles
        )
        variant = applied(variant, change.variant, [part])
    return variant


def walked(
    changes: Sequence[Change],
    instead: Sequence[tuple[Change, ...]],
    start: Variant,
    bench: Bench,
    steps: int,
) -> list[Step] | None:
    """The steps of taking `changes` in their order; None where one cannot be read on its own.

    `instead` has, for each, what might have been taken in its place.
    """
    now = read_as(start, bench.target, bench.evidence, steps)
    found: list[Step] = []
    for number, (change, others) in enumerate(zip(changes, instead, strict=True), 1):
        if now is None:
            return None
        there = replace(change, variant=joined(start, changes[:number]))
        trial = trial_of(there, now, bench, steps)
        if trial is None:
            return None
        found.append(Step(before=now, trials=(trial,), others=others))
        now = trial.chains
    return found
