"""diagnose(): from cheap to costly, until the loss is explained."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from eyas import engines
from eyas.checkpoint import Checkpoint
from eyas.checks import Report
from eyas.checks.compare import as_trained, report_on
from eyas.convert import repair_of
from eyas.data.states import StateStore
from eyas.decode.interval import Estimate
from eyas.diagnose.ablation import Part, Price, ablate
from eyas.diagnose.bench import Bench, Say, open_bench, silent
from eyas.diagnose.blame import blame
from eyas.diagnose.causes import Cause, CauseId, Stage
from eyas.diagnose.chains import Chains, chains
from eyas.diagnose.contents import Content, contents
from eyas.diagnose.difference import Difference
from eyas.diagnose.outcome import Diagnosis, TrainingMeasure
from eyas.diagnose.ranking import Court
from eyas.diagnose.reading import declared
from eyas.diagnose.serving import ServedRun, serve
from eyas.diagnose.speed import Speed, decompose
from eyas.diagnose.suspicion import SUSPECT, lost_for_good
from eyas.diagnose.sweep import Sweep, sweep
from eyas.diagnose.training_side import training_side
from eyas.diagnose.training_told import of_training
from eyas.diagnose.trial import Step
from eyas.diagnose.variant import Variant, built
from eyas.diagnose.writing import written
from eyas.engines import EngineRef, Launch
from eyas.errors import NotADrafterError
from eyas.model.weights import RoleTensors
from eyas.spec import NotChecked, Served

SOUND = 1.5  # tau as trained: most drafters that anybody serves give more, few broken ones do
TOLERANCE = 0.05  # of an observed tau, as a share: what engines keep to (vLLM's own tests)


def diagnose(
    checkpoint: Checkpoint,
    target: str | Path | Bench,
    ref: EngineRef | None,
    launch: Launch,
    *,
    observed_tau: float | None = None,
    observed_rates: tuple[float, ...] | None = None,
    speeds: tuple[float, float] | None = None,
    prompts: Path | None = None,
    states: StateStore | None = None,
    steps: int = 3,
    values: bool = True,
    say: Say = silent,
) -> Diagnosis:
    """Where the acceptance of `checkpoint` on engine `ref` under `launch` is lost.

    `target` is a location, or a bench that was opened for several drafters. Without `ref` the
    files alone are judged. `observed_tau` (bonus included) and `observed_rates` (cumulative) are
    what a server showed, `speeds` its tokens a second with speculation and without. With `states`,
    those that it was trained on, the drafter is scored on them too. With `values` the numbers in
    the files are looked at as well. The first of `causes` may be `none`.

    Raises TargetError and UsageError for a target, prompts and states that cannot be used,
    EngineError for an unknown engine, CheckpointError for files that cannot be read, and
    UnsupportedError for a drafter that eyas cannot run.
    """
    bench = target if isinstance(target, Bench) else open_bench(target, prompts, say)
    if observed_tau is None and observed_rates is not None:
        observed_tau = 1.0 + sum(observed_rates)
    case = Case(
        checkpoint=checkpoint,
        bench=bench,
        ref=ref,
        launch=launch,
        states=states,
        steps=steps,
        values=values,
        say=say,
        observed_tau=observed_tau,
        observed_rates=observed_rates,
    )
    try:
        case.judge()
    except NotADrafterError as error:
        case.causes.append(case.court.static(CauseId.ARCHITECTURE, error.message, first=True))
    speed = case.observe(speeds)
    return written(case, speed)


@dataclass(slots=True, kw_only=True)
class Case:
    """The stages of one diagnosis, and what they have found so far."""

    checkpoint: Checkpoint
    bench: Bench
    ref: EngineRef | None
    launch: Launch
    states: StateStore | None
    steps: int
    values: bool
    say: Say
    observed_tau: float | None
    observed_rates: tuple[float, ...] | None
    report: Report | None = None
    trained: Chains | None = None
    training: TrainingMeasure | None = None
    served: ServedRun = field(default_factory=ServedRun)
    swept: Sweep | None = None
    prices: tuple[Price, ...] = ()
    explained: bool | None = None
    gone: bool = False
    unjudged: str | None = None
    causes: list[Cause] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def court(self) -> Court:
        """Who puts causes into words for this drafter."""
        return Court(
            report=self.report,
            draft=self.checkpoint.location,
            target=str(self.bench.facts.location),
            config=self.checkpoint.config_file,
        )

    def judge(self) -> None:
        """All stages in order, as far as they are needed."""
        view = self._engine()
        self._check(view)
        self.say("replaying as trained")
        files = declared(self.checkpoint, self.bench.target)
        start = files.variant
        now = self.trained = self._chains(start)
        if self.states is not None:
            self.say("scoring on the training states")
            self.training = training_side(self.states, start, self.bench, self.steps)
            self.take(of_training(self.training, start, now, self.bench, self.court))
        if view is not None:
            self.say("replaying as served")
            arguments = (self.checkpoint, self.bench, start, self.steps)
            self.served = serve(view, str(self.ref), *arguments)
        if self.served.note is not None:
            self.notes.append(self.served.note)
        held: tuple[Content, ...] = ()
        if self.values:
            roles = frozenset(RoleTensors(self.checkpoint).roles) - files.absent
            held = contents(start, self.bench.target, roles)
        self.gone = lost_for_good(files.faults, held, start, now, self.bench, self.report)
        ideal, sound = start, now
        if not self._explained():
            self.say("trying other readings")
            self.swept = sweep(start, self.bench, self.steps, self.say, proven_alone=self.gone)
            ideal, sound = self.swept.end, self.swept.chains
            if self.swept.thin is not None:
                self.notes.append(self.swept.thin)
            if self.gone and not self.swept.steps and self.swept.thin is None:
                self.notes.append(
                    "no other reading was tried: with so much gone no replay can tell them apart"
                )
        self._price(ideal, sound, start, now)
        blame(self, files, held, now, ideal, sound)

    def _engine(self) -> Served | None:
        if self.ref is None:
            return None
        view = engines.read(self.ref, self.checkpoint, target=self.bench.facts, launch=self.launch)
        if isinstance(view, NotChecked):
            self.notes.append(f"{self.ref} was not judged: {view.reason}")
            self.unjudged = view.reason
            return None
        return view

    def _check(self, view: Served | None) -> None:
        trained = as_trained(self.checkpoint, target=self.bench.facts, values=self.values)
        repair = repair_of(self.checkpoint, self.bench.facts)
        views = [] if view is None else [view]
        self.report = report_on(replace(trained, repair=repair), views)

    def _explained(self) -> bool:
        """Whether known differences explain what was observed, so that nothing more is sought.

        The files' own reading must be sound by itself, and the engine's much below it: what is
        observed is always what is served, whatever is wrong with both.
        """
        if self.observed_tau is None or not self.served.parts or self.trained is None:
            return False
        sound = self.trained.expected_tau
        lost = self.observed_tau - 1 < (sound - 1) / 2
        return sound >= SOUND and lost and self._within(self.observed_tau)

    def _within(self, observed: float) -> bool:
        """Whether what is served gives `observed`, for some content of memory."""
        taus = [found.tau for found in self.served.runs.values()]
        ends = [(t.interval.low, t.interval.high) if t.interval else (t.value,) * 2 for t in taus]
        if not ends:
            return False
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        return low * (1 - TOLERANCE) <= observed <= high * (1 + TOLERANCE)

    def _price(self, ideal: Variant, sound: Chains, start: Variant, now: Chains) -> None:
        parts = list(self.served.parts)
        everything = self.served.chains
        for cause, steps in self.repaired().items():
            changes = [step.taken.change for step in steps]
            undo = Difference(
                cause=cause,
                what="; ".join(change.what for change in changes),
                facets=frozenset().union(*(change.facets for change in changes)),
                roles=frozenset().union(*(change.roles for change in changes)),
            )
            parts.append(Part(difference=undo, source=start, engine=False))
        if everything is None and not self.served.parts:  # nothing but what the files have wrong
            everything = now
        if parts:
            self.say(f"pricing {len(parts)} differences")
            self.prices = ablate(ideal, sound, everything, parts, self.bench)

    def repaired(self) -> dict[CauseId, list[Step]]:
        """What the sweep changed, by cause."""
        found: dict[CauseId, list[Step]] = {}
        for step in () if self.swept is None else self.swept.steps:
            found.setdefault(step.taken.change.cause, []).append(step)
        return found

    def take(self, found: Iterable[Cause | str]) -> None:
        """Keeps causes, and what is only worth a note."""
        for each in found:
            if isinstance(each, str):
                self.notes.append(each)
            else:
                self.causes.append(each)

    def observe(self, speeds: tuple[float, float] | None) -> Speed | None:
        """Compares what a server showed with what is served; returns its speed taken apart."""
        taus = [found.rounds.tau or 1.0 for found in self.served.runs.values()]
        if self.observed_tau is not None and taus:
            self.explained = self._within(self.observed_tau)
            gap = min(taus) - self.observed_tau
            if not self.explained and gap > 0:
                what = f"observed tau {self.observed_tau:.2f}, as served it gives {min(taus):.2f}"
                lost = Estimate(value=gap, interval=None)
                self.causes.append(
                    self.court.cause(
                        CauseId.ENGINE, Stage.SPEED, [what], returned=lost, score=2 * gap
                    )
                )
        tau = self.observed_tau if self.observed_tau is not None else min(taus, default=None)
        if speeds is None or tau is None:
            return None
        speed = decompose(*speeds, tau, self.steps)
        if speed.costly:
            what = f"R {speed.round_cost:.2f} where {speed.usual_cost:.2f} is usual"
            self.causes.append(
                self.court.cause(CauseId.ENGINE_COST, Stage.SPEED, [what], score=SUSPECT)
            )
        return speed

    def _chains(self, variant: Variant) -> Chains:
        drafter = built(variant, self.bench.target)
        return chains(drafter, self.bench.evidence, self.steps, shift=variant.shift, every=True)
