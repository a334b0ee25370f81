"""Sweep: what a checkpoint was trained for, inferred from how well each reading of it drafts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eyas.decode.interval import Estimate
from eyas.diagnose.bench import Bench, Say
from eyas.diagnose.candidates import candidates
from eyas.diagnose.causes import CauseId
from eyas.diagnose.chains import Chains, chains
from eyas.diagnose.change import Change
from eyas.diagnose.evidence import Evidence
from eyas.diagnose.head_rows import renamed
from eyas.diagnose.variant import Variant, built
from eyas.errors import EyasError

SCREEN_TEXTS, SCREEN_STEPS = 4, 2
FINALISTS = 4
CAUSES = 3  # different causes that are repaired at most
CHANGES = 8  # changes at most
LEVEL = 0.99  # of the interval that must not hold zero: many candidates are tried
LEAST = 0.0008  # of closeness: below it a gain is no news even if it is real
LEAST_TAU = 0.01  # that all repairs together must give back
LEAST_TAU_OF_A_WEAK_ONE = 0.02  # where drafts stay rare, and chance is a larger part of them
WEAK = 1.2  # tau below which nothing is repaired
LEAST_TEXTS = 8  # of fewer, all gain from one change in 2^texts by chance: too often at `LEVEL`


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One candidate on all of the evidence: its gain in closeness, and the tau that it expects."""

    change: Change
    chains: Chains
    gain: Estimate

    @property
    def significant(self) -> bool:
        """Whether chance would hardly give such a gain, and it is worth a word."""
        low = -1.0 if self.gain.interval is None else self.gain.interval.low
        return low > 0 and self.gain.value >= LEAST


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change that was taken: `trials` are the finalists, best first; it improves on `before`."""

    before: Chains
    trials: tuple[Trial, ...]

    @property
    def taken(self) -> Trial:
        """The best one."""
        return self.trials[0]

    @property
    def margin(self) -> float | None:
        """How much nearer it is than the best candidate for another cause."""
        cause = self.taken.change.cause
        others = [trial.gain.value for trial in self.trials if trial.change.cause is not cause]
        return self.taken.gain.value - max(others) if others else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The repaired reading and how it was found; `last` are the finalists that were not taken.

    `thin` says why what looked better is not taken for a repair, where that is so.
    """

    start: Chains
    steps: tuple[Step, ...]
    end: Variant
    chains: Chains
    last: tuple[Trial, ...]
    tried: int
    thin: str | None = None

    @property
    def causes(self) -> tuple[CauseId, ...]:
        """What was repaired, in order."""
        return tuple(dict.fromkeys(step.taken.change.cause for step in self.steps))


def sweep(start: Variant, bench: Bench, steps: int, say: Say) -> Sweep:
    """Takes the best single change as long as one drafts better beyond chance.

    What is repaired so must show in tau at the end: a drafter that stays as weak as it was has
    another fault, or none.
    """
    evidence, target = bench.evidence, bench.target
    now = chains(built(start, target), evidence, steps, shift=start.shift, every=True)
    if len(evidence.texts) < LEAST_TEXTS:
        few = (
            f"{len(evidence.texts)} texts cannot tell readings apart: no other reading was tried;"
            f" give at least {LEAST_TEXTS} prompts"
        )
        return Sweep(start=now, steps=(), end=start, chains=now, last=(), tried=0, thin=few)
    found: list[Step] = []
    variant, first, tried = start, now, 0
    last: tuple[Trial, ...] = ()
    while len(found) < CHANGES:
        trials, looked = _round(variant, now, bench, steps, found)
        tried += looked
        say(f"{tried} readings tried")
        if not trials or not trials[0].significant:
            last = trials
            break
        step = Step(before=now, trials=trials)
        causes = {s.taken.change.cause for s in (*found, step)}
        if len(causes) > CAUSES:
            last = trials
            break
        found.append(step)
        variant, now = step.taken.change.variant, step.taken.chains
    thin = _thin(found, first, now)
    if thin is not None:
        last = tuple(trial for step in found for trial in step.trials)
        found, variant, now = [], start, first
    return Sweep(
        start=first,
        steps=tuple(found),
        end=variant,
        chains=now,
        last=last,
        tried=tried,
        thin=thin,
    )


def _thin(found: Sequence[Step], first: Chains, now: Chains) -> str | None:
    """Why the changes in `found`, which lead from `first` to `now`, repair nothing."""
    gained = now.expected_tau - first.expected_tau
    least = LEAST_TAU_OF_A_WEAK_ONE if now.expected_tau < WEAK else LEAST_TAU
    if not found or gained >= least:
        return None
    what = "; ".join(step.taken.change.what for step in found)
    return (
        f"closer, but no repair ({what}): tau {first.expected_tau:.2f} becomes"
        f" {now.expected_tau:.2f}"
    )


def _round(
    variant: Variant, now: Chains, bench: Bench, steps: int, found: Sequence[Step]
) -> tuple[tuple[Trial, ...], int]:
    """The finalists of one round, best first, and how many candidates there were."""
    near = list(candidates(variant, bench.target, bench.facts))
    rows = renamed(variant, bench.target)
    if rows is not None:
        trials = _trials([rows], now, bench, steps)
        if trials and trials[0].significant:
            return trials, 1
    trials, tried = _best(near, variant, now, bench, steps), len(near)
    moved = any(step.taken.change.cause is CauseId.BOUNDARIES for step in found)
    if not (trials and trials[0].significant) or moved:
        far = list(candidates(variant, bench.target, bench.facts, far=True))
        trials = _sorted((*trials, *_best(far, variant, now, bench, steps)))
        tried += len(far)
    return trials, tried


def _best(
    changes: Sequence[Change], variant: Variant, now: Chains, bench: Bench, steps: int
) -> tuple[Trial, ...]:
    """Those that look best on a part of the evidence, tried on all of it."""
    part = bench.evidence.some(SCREEN_TEXTS)
    base = chains(built(variant, bench.target), part, SCREEN_STEPS, shift=variant.shift, every=True)
    screened = []
    for change in changes:
        seen = _run(change, bench, part, SCREEN_STEPS)
        if seen is not None:
            screened.append((seen.nearness - base.nearness, change))
    screened.sort(key=lambda pair: -pair[0])
    allowed = [change for gain, change in screened[:FINALISTS] if gain > -LEAST]
    # what is fed back shows from the second step on
    allowed += [change for _, change in screened if change.cause is CauseId.FEEDBACK]
    return _trials(allowed, now, bench, steps)


def _trials(changes: Iterable[Change], now: Chains, bench: Bench, steps: int) -> tuple[Trial, ...]:
    found = []
    for change in changes:
        seen = _run(change, bench, bench.evidence, steps)
        if seen is not None:
            gain = seen.gain_over(now, LEVEL)
            found.append(Trial(change=change, chains=seen, gain=gain))
    return _sorted(found)


def _sorted(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    return tuple(sorted(trials, key=lambda trial: -trial.gain.value))


def _run(change: Change, bench: Bench, evidence: Evidence, steps: int) -> Chains | None:
    """What `change` drafts; None for a reading that these matrices do not allow."""
    try:
        drafter = built(change.variant, bench.target)
        return chains(drafter, evidence, steps, shift=change.variant.shift, every=True)
    except EyasError:
        return None
