"""Evaluation: what a drafter's arms accepted, by category and by draft position."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from eyas.decode.acceptance import Acceptance, informative
from eyas.decode.curve import Curve
from eyas.decode.generation import Generation
from eyas.decode.interval import Estimate, tau_by_category
from eyas.decode.outcomes import Outcome
from eyas.decode.record import Record
from eyas.engines import EngineRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One outcome for every prompt; `fill` is what stood in for lost matrices, if any were."""

    fill: str | None
    outcomes: tuple[Outcome, ...]

    @property
    def acceptance(self) -> Acceptance:
        """All rounds together."""
        return Acceptance.total([a for o in self.outcomes if (a := o.generation.acceptance)])

    def record(self, plain: tuple[Generation, ...] | None = None) -> Record:
        """The run in numbers; `plain` are the target's own answers to the same prompts."""
        return Record.of([o.generation for o in self.outcomes], plain)

    def taus(self, seed: int) -> tuple[dict[str, Estimate], Estimate | None]:
        """tau by category with its interval, and the macro mean."""
        records = informative((o.category, o.generation.acceptance) for o in self.outcomes)
        return tau_by_category(records, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResult:
    """An arm's runs, one a fill; none, and a reason, where it could not be run."""

    label: str
    engine: EngineRef | None
    runs: tuple[Run, ...]
    refusal: str | None

    @property
    def curve(self) -> Curve:
        """Acceptance by draft position over the runs."""
        return Curve.of(self.label, [run.acceptance for run in self.runs])


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Arms over the same prompts. `plain` holds the target's own answers where it was asked.

    `seed` fixes the resampling behind every interval.
    """

    steps: int
    max_new: int
    seed: int
    arms: tuple[ArmResult, ...]
    plain: tuple[Generation, ...] | None

    @property
    def prompts_by_category(self) -> dict[str, int]:
        """How many prompts each category has, in the order they came."""
        counts: dict[str, int] = defaultdict(int)
        runs = [run for arm in self.arms for run in arm.runs]
        for outcome in runs[0].outcomes if runs else ():
            counts[outcome.category] += 1
        return dict(counts)

    @property
    def curves(self) -> tuple[Curve, ...]:
        """The curve of every arm that was run."""
        found = (arm.curve for arm in self.arms if arm.runs)
        return tuple(curve for curve in found if curve.positions)

    def record(self, arm: ArmResult, run: Run) -> Record:
        """A run's record, with the baseline where the two were timed side by side."""
        return run.record(self.plain if arm.engine is None else None)

    def same_answers(self, run: Run) -> int | None:
        """How many answers are the target's own, token for token; None without a baseline."""
        if self.plain is None:
            return None
        pairs = zip(self.plain, run.outcomes, strict=True)
        return sum(alone.tokens == outcome.generation.tokens for alone, outcome in pairs)
