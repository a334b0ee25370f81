"""Trial: one change of a reading, tried on all of the evidence, and the step that takes one."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.decode.interval import Estimate
from eyas.diagnose.bench import Bench
from eyas.diagnose.chains import Chains, chains
from eyas.diagnose.change import Change
from eyas.diagnose.evidence import Evidence
from eyas.diagnose.variant import Variant, built
from eyas.errors import EyasError
from eyas.model.target import Target

LEVEL = 0.99  # of the interval that must not hold zero: many candidates are tried
LEAST = 0.0008  # of closeness: below it a gain is no news even if it is real
LEAST_TAU = 0.01  # that the last repair must give back: one draft in a hundred rounds
LEAST_TAU_OF_A_WEAK_ONE = 0.02  # where drafts stay rare, and chance is a larger part of them
WEAK = 1.2  # tau below which a drafter is as good as none: a round costs more than it saves


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One candidate on all of the evidence: its gain in closeness, and the tau that it expects."""

    change: Change
    chains: Chains
    gain: Estimate

    @property
    def worth_taking(self) -> bool:
        """Whether the matrices prove it, or chance would hardly give such a gain."""
        return self.change.proven or self.significant

    @property
    def significant(self) -> bool:
        """Whether chance would hardly give such a gain, and it is worth a word."""
        low = -1.0 if self.gain.interval is None else self.gain.interval.low
        return low > 0 and self.gain.value >= LEAST


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change that was taken: `trials` are the finalists, best first; it improves on `before`.

    `others` are changes that might have been taken instead, tried beside another reading.
    """

    before: Chains
    trials: tuple[Trial, ...]
    others: tuple[Change, ...] = ()

    @property
    def taken(self) -> Trial:
        """The best one."""
        return self.trials[0]

    @property
    def instead(self) -> tuple[Change, ...]:
        """What might have been taken instead."""
        return (*(trial.change for trial in self.trials[1:]), *self.others)

    @property
    def tells(self) -> bool:
        """Whether more is accepted after it, or the matrices themselves prove it."""
        after = self.taken.chains.expected_tau
        least = LEAST_TAU_OF_A_WEAK_ONE if after < WEAK else LEAST_TAU
        return self.taken.change.proven or after - self.before.expected_tau >= least

    @property
    def margin(self) -> float | None:
        """How much nearer it is than the best candidate for another cause."""
        cause = self.taken.change.cause
        others = [trial.gain.value for trial in self.trials if trial.change.cause is not cause]
        return self.taken.gain.value - max(others) if others else None


def trial_of(change: Change, now: Chains, bench: Bench, steps: int) -> Trial | None:
    """`change` beside `now`; None for a reading that these matrices do not allow."""
    seen = read_as(change.variant, bench.target, bench.evidence, steps)
    if seen is None:
        return None
    return Trial(change=change, chains=seen, gain=seen.gain_over(now, LEVEL))


def read_as(variant: Variant, target: Target, evidence: Evidence, steps: int) -> Chains | None:
    """What `variant` drafts on `evidence`; None where its matrices do not fit its spec."""
    try:
        drafter = built(variant, target)
        return chains(drafter, evidence, steps, shift=variant.shift, every=True)
    except EyasError:
        return None
