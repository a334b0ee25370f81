"""Sweep: what a checkpoint was trained for, inferred from how well each reading of it drafts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from eyas.diagnose.bench import Bench, Say
from eyas.diagnose.candidates import candidates
from eyas.diagnose.causes import CauseId
from eyas.diagnose.chains import Chains, chains
from eyas.diagnose.change import Change
from eyas.diagnose.facets import FEEDBACK, FUSION_NORMS, RESIDUAL
from eyas.diagnose.head_rows import renamed
from eyas.diagnose.revision import joined, revised, walked
from eyas.diagnose.trial import LEAST, LEVEL, Step, Trial, read_as, trial_of
from eyas.diagnose.variant import Variant, built

SCREEN_TEXTS = 4
SATURATED = 0.8  # acceptance of the first draft above which a change may show in the second alone
FINALISTS = 4
_FLAGS = frozenset({RESIDUAL, FEEDBACK, FUSION_NORMS})  # those of one recipe
CAUSES = 3  # different causes that are repaired at most
CHANGES = 8  # changes at most
LEAST_TEXTS = 8  # of fewer, all gain from one change in 2^texts by chance: too often at `LEVEL`


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


def sweep(
    start: Variant, bench: Bench, steps: int, say: Say, *, proven_alone: bool = False
) -> Sweep:
    """Takes the best single change as long as one drafts better beyond chance.

    What is repaired so must show in tau at the end: where it does not, a drafter has another fault,
    or none. With `proven_alone` only what the matrices themselves prove is taken: where others are
    gone for good, no replay is sound enough to tell readings apart.
    """
    evidence, target = bench.evidence, bench.target
    now = chains(built(start, target), evidence, steps, shift=start.shift, every=True)
    if len(evidence.texts) < LEAST_TEXTS:
        more = f"give at least {LEAST_TEXTS} prompts"
        if evidence.left_out:
            more = f"{evidence.left_out} more are too long to be held: give shorter ones"
        few = (
            f"{len(evidence.texts)} texts cannot tell readings apart: no other reading was tried;"
            f" {more}"
        )
        return Sweep(start=now, steps=(), end=start, chains=now, last=(), tried=0, thin=few)
    found: list[Step] = []
    variant, first, tried = start, now, 0
    last: tuple[Trial, ...] = ()
    while len(found) < CHANGES:
        trials, looked = _round(variant, now, bench, steps, found, proven_alone=proven_alone)
        tried += looked
        say(f"{tried} readings tried")
        taken = [Step(before=now, trials=trials)] if trials and trials[0].worth_taking else []
        if not taken and not proven_alone:
            taken = _flags_together(variant, now, bench, steps)
            tried += bool(taken)
        causes = {step.taken.change.cause for step in (*found, *taken)}
        if not taken or len(causes) > CAUSES:
            last = trials
            break
        found += taken
        variant, now = found[-1].taken.change.variant, found[-1].taken.chains
    found = revised(found, start, bench, steps)
    told = _telling(found)
    untold = [trial for step in found[len(told) :] for trial in step.trials]
    return Sweep(
        start=first,
        steps=told,
        end=told[-1].taken.change.variant if told else start,
        chains=told[-1].taken.chains if told else first,
        last=(*untold, *last),
        tried=tried,
        thin=_thin(found[len(told) :]),
    )


def _flags_together(variant: Variant, now: Chains, bench: Bench, steps: int) -> list[Step]:
    """Two flags of the config changed at once, where neither gains alone, and both together do.

    An exporter that forgets one flag of a recipe forgets another, and each may hide the other.
    """
    near = candidates(variant, bench.target, bench.facts)
    flags = [change for change in near if change.facets and change.facets <= _FLAGS]
    part = bench.evidence.some(SCREEN_TEXTS)
    screened = []
    for pair in combinations(flags, 2):
        seen = read_as(joined(variant, pair), bench.target, part, steps)
        if seen is not None:
            screened.append((seen.nearness, pair))
    if not screened:
        return []
    _, best = max(screened, key=lambda each: each[0])
    found = walked(best, [() for _ in best], variant, bench, steps)
    if found is None:
        return []
    gain = found[-1].taken.chains.gain_over(now, LEVEL)
    beyond_chance = gain.interval is not None and gain.interval.low > 0
    return found if beyond_chance and gain.value >= LEAST else []


def _telling(found: Sequence[Step]) -> tuple[Step, ...]:
    """`found` without the last ones, after which no more is accepted than before."""
    kept = list(found)
    while kept and not kept[-1].tells:
        kept.pop()
    return tuple(kept)


def _thin(untold: Sequence[Step]) -> str | None:
    """What the changes in `untold` are: nearer, and worth nothing."""
    if not untold:
        return None
    before, after = untold[0].before, untold[-1].taken.chains
    what = "; ".join(step.taken.change.what for step in untold)
    return (
        f"closer, but no repair ({what}): tau {before.expected_tau:.2f} becomes"
        f" {after.expected_tau:.2f}"
    )


def _round(
    variant: Variant,
    now: Chains,
    bench: Bench,
    steps: int,
    found: Sequence[Step],
    *,
    proven_alone: bool,
) -> tuple[tuple[Trial, ...], int]:
    """The finalists of one round, best first, and how many candidates there were."""
    rows = renamed(variant, bench.target)
    if rows is not None and not any(step.taken.change.what == rows.what for step in found):
        trials = _trials([rows], now, bench, steps)
        if trials and trials[0].worth_taking:
            return trials, 1
    if proven_alone:
        return (), 0
    near = list(candidates(variant, bench.target, bench.facts))
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
    looked = min(steps, 2 if now.rates[0] > SATURATED else 1)
    base = chains(built(variant, bench.target), part, looked, shift=variant.shift, every=True)
    screened = []
    for change in changes:
        seen = read_as(change.variant, bench.target, part, looked)
        if seen is not None:
            screened.append((seen.nearness - base.nearness, change))
    screened.sort(key=lambda pair: -pair[0])
    allowed = [change for gain, change in screened[:FINALISTS] if gain > -LEAST]
    # what is fed back shows from the second step on
    fed_back = [change for _, change in screened if change.cause is CauseId.FEEDBACK]
    allowed += [change for change in fed_back if not any(change is one for one in allowed)]
    return _trials(allowed, now, bench, steps)


def _trials(changes: Iterable[Change], now: Chains, bench: Bench, steps: int) -> tuple[Trial, ...]:
    tried = (trial_of(change, now, bench, steps) for change in changes)
    return _sorted(trial for trial in tried if trial is not None)


def _sorted(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    return tuple(sorted(trials, key=lambda trial: -trial.gain.value))
