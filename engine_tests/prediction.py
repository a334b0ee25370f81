"""Prediction: what eyas says that an engine will do with a drafter, over answers that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine_tests.serving import STEPS

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.decode.acceptance import Acceptance
from eyas.decode.arms import Arm, as_served
from eyas.decode.interval import Interval, tau_by_category
from eyas.decode.replay import replay
from eyas.engines import EngineRef, Launch, read
from eyas.errors import EngineError
from eyas.model.target import Target
from eyas.spec import NotChecked, Stage

Tokens = Sequence[int]
Records = tuple[Acceptance, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Where the engine raises, or the records of a replay as served, one a fill."""

    raises: str | None  # "load" or "first request"
    runs: tuple[Records, ...]

    @property
    def tau(self) -> Interval:
        """Where tau lies: the 95 % interval, over all fills of what is left to chance.

        Memory is not bound to the fills. What it holds may drown all that was trained, and then no
        draft is accepted: where a part is left to chance the interval begins at 1.
        """
        intervals = [interval_of(records) for records in self.runs]
        low = 1.0 if self.left_to_chance else min(i.low for i in intervals)
        return Interval(low=low, high=max(i.high for i in intervals))

    @property
    def left_to_chance(self) -> bool:
        """Whether part of the drafter holds whatever the memory held."""
        return len(self.runs) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """What all predictions share: the target, and the answers that are replayed."""

    target: Target
    facts: TargetFacts
    prompts: Sequence[Tokens]
    answers: Sequence[Tokens]

    def of(self, ref: EngineRef, checkpoint: Checkpoint, launch: Launch) -> Prediction:
        """What `ref` will make of `checkpoint` under `launch`."""
        view = read(ref, checkpoint, target=self.facts, launch=launch)
        assert not isinstance(view, NotChecked), view.reason
        if view.refusal is not None:
            late = view.refusal.stage is Stage.FIRST_REQUEST
            return Prediction(raises="first request" if late else "load", runs=())
        arm = as_served(ref, checkpoint, self.target, self.facts, launch)
        try:
            return Prediction(raises=None, runs=self._runs(arm))
        except EngineError:  # its map points out of the vocabulary, which shows when it is used
            return Prediction(raises="first request", runs=())

    def _runs(self, arm: Arm) -> tuple[Records, ...]:
        pairs = list(zip(self.prompts, self.answers, strict=True))
        runs = []
        for build in arm.builds:
            drafter = build.drafter()
            records = (replay(self.target, drafter, p, a, steps=STEPS) for p, a in pairs)
            runs.append(tuple(records))
        return tuple(runs)


def interval_of(records: Sequence[Acceptance]) -> Interval:
    """The 95 % interval of tau over prompts."""
    estimates, _ = tau_by_category({"all": records}, seed=0)
    interval = estimates["all"].interval
    assert interval is not None  # there are several prompts
    return interval
