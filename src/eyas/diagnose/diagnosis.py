"""diagnose(): from cheap to costly, until the loss is explained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eyas import engines
from eyas.checkpoint import Checkpoint
from eyas.checks import Report
from eyas.checks.compare import as_trained, report_on
from eyas.convert import repair_of
from eyas.decode.interval import Estimate
from eyas.diagnose.ablation import Part, Price, ablate
from eyas.diagnose.bench import Bench, Say, open_bench, silent
from eyas.diagnose.causes import Cause, CauseId, Stage
from eyas.diagnose.chains import Chains, chains
from eyas.diagnose.contents import Content, contents
from eyas.diagnose.difference import Difference, Fillings, differences
from eyas.diagnose.outcome import Diagnosis, Measure, Priced, Tried
from eyas.diagnose.ranking import Court, ranked
from eyas.diagnose.reading import Declared, as_served, declared
from eyas.diagnose.speed import decompose
from eyas.diagnose.sweep import LEVEL, Step, Sweep, sweep
from eyas.diagnose.variant import Variant, built
from eyas.diagnose.verdict import verdict
from eyas.engines import EngineRef, Launch
from eyas.errors import EngineError, NotADrafterError, TargetError, UnsupportedError
from eyas.model.served import Fill
from eyas.spec import Initialisation, NotChecked, Served, Unfilled

WEAK = 1.2  # tau as trained below which a drafter is called weak when nothing explains it
TOLERANCE = 0.05  # of an observed tau, as a share: what engines keep to (vLLM's own tests)
SUSPECT = 0.01  # the score of what is suspected, and not shown by a replay
FILL = Fill.NORMAL  # what the ablation puts where nothing is loaded


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
    steps: int = 3,
    values: bool = True,
    say: Say = silent,
) -> Diagnosis:
    """Where the acceptance of `checkpoint` on engine `ref` under `launch` is lost.

    `target` is a location, or a bench that was opened for several drafters. Without `ref` the
    files alone are judged. `observed_tau` (bonus included) and `observed_rates` (cumulative) are
    what a server showed, `speeds` its tokens a second with speculation and without. With `values`
    the numbers in the files are looked at as well. The first of `causes` may be `none`.

    Raises TargetError and UsageError for a target and prompts that cannot be used, EngineError for
    an unknown engine, CheckpointError for files that cannot be read, and UnsupportedError for a
    drafter that eyas cannot run.
    """
    bench = target if isinstance(target, Bench) else open_bench(target, prompts, say)
    case = _Case(checkpoint, bench, ref, launch, steps, values, say)
    if observed_tau is None and observed_rates is not None:
        observed_tau = 1.0 + sum(observed_rates)
    case.observed_tau, case.observed_rates = observed_tau, observed_rates
    try:
        case.judge()
    except NotADrafterError as error:
        case.causes.append(case.court.static(CauseId.ARCHITECTURE, error.message, first=True))
    return case.closed(speeds)


@dataclass(slots=True)
class _Case:
    """The stages of one diagnosis, and what they have found so far."""

    checkpoint: Checkpoint
    bench: Bench
    ref: EngineRef | None
    launch: Launch
    steps: int
    values: bool
    say: Say
    observed_tau: float | None = None
    observed_rates: tuple[float, ...] | None = None
    report: Report | None = None
    reading: Served | None = None
    refusal: str | None = None
    causes: list[Cause] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    served: list[Measure] = field(default_factory=list)
    prices: tuple[Price, ...] = ()
    swept: Sweep | None = None
    trained: Measure | None = None
    explained: bool | None = None

    @property
    def court(self) -> Court:
        return Court(
            report=self.report,
            draft=self.checkpoint.location,
            target=str(self.bench.facts.location),
            config=self.checkpoint.config_file,
        )

    def judge(self) -> None:
        """All stages in order."""
        if self.ref is not None:
            self._read_engine(self.ref)
        self._check()
        self.say("replaying as trained")
        files = declared(self.checkpoint, self.bench.target)
        start = files.variant
        now = self._chains(start)
        self.trained = measure("as trained", now)
        held = contents(start, self.bench.target, self._in_files()) if self.values else ()
        served, parts = self._serve(start)
        everything = None if served is None else self._chains(served, every=False)
        if not self._explained_by(parts):
            self.say("trying other readings")
            self.swept = sweep(start, self.bench, self.steps, self.say)
        ideal = start if self.swept is None else self.swept.end
        sound = now if self.swept is None else self.swept.chains
        self._price(ideal, sound, start, parts, everything)
        self._blame(files, held, start, now, sound)

    # -- static ------------------------------------------------------------------------------

    def _read_engine(self, ref: EngineRef) -> None:
        view = engines.read(ref, self.checkpoint, target=self.bench.facts, launch=self.launch)
        if isinstance(view, NotChecked):
            self.notes.append(f"{ref} was not judged: {view.reason}")
            return
        self.reading = view
        if view.refusal is not None:
            self.refusal = f"{ref} stops at {view.refusal.stage}: {view.refusal.message}"

    def _check(self) -> None:
        trained = as_trained(self.checkpoint, target=self.bench.facts, values=self.values)
        views = [] if self.reading is None else [self.reading]
        from dataclasses import replace

        repair = repair_of(self.checkpoint, self.bench.facts)
        self.report = report_on(replace(trained, repair=repair), views)

    def _in_files(self) -> frozenset[str]:
        from eyas.model.weights import RoleTensors

        return frozenset(RoleTensors(self.checkpoint).roles)

    # -- as served ---------------------------------------------------------------------------

    def _serve(self, start: Variant) -> tuple[Variant | None, tuple[Part, ...]]:
        """The drafter as the engine has it, measured, and the parts in which it differs."""
        view = self.reading
        if view is None or view.refusal is not None or view.landing is None:
            return None, ()
        chance = any(
            isinstance(s.source, Unfilled)
            and s.source.initialisation in (Initialisation.MEMORY, Initialisation.RANDOM)
            for p in view.landing.unfilled
            for s in p.segments
        )
        chosen: Variant | None = None
        for fill in (FILL, Fill.ZEROS, Fill.SHUFFLED) if chance else (FILL,):
            try:
                variant = as_served(view, self.checkpoint, self.bench.target, fill)
                found = self._chains(variant)
            except (EngineError, TargetError) as error:
                self.refusal = error.message
                return None, self._unrun(start, view)
            except UnsupportedError as error:
                self.notes.append(f"as served it cannot be run: {error.message}")
                return None, self._unrun(start, view)
            label = f"as served by {self.ref}" + (f", memory filled with {fill}" if chance else "")
            self.served.append(measure(label, found))
            chosen = chosen or variant
        assert chosen is not None  # at least one fill
        parts = differences(start, chosen, self.bench.target, view.landing)
        return chosen, tuple(Part(difference=d, source=chosen, engine=True) for d in parts)

    def _unrun(self, start: Variant, view: Served) -> tuple[Part, ...]:
        """The differences of a drafter that cannot be run as served: facets, and what is lost."""
        from eyas.diagnose.difference import by_cause
        from eyas.spec import Eagle3Spec

        if not isinstance(view.spec, Eagle3Spec):
            return ()
        other = Variant(spec=view.spec, state=start.state)
        found = list(differences(start, other, self.bench.target))
        lost = Fillings.of(view.landing).unfilled & start.state.keys()
        found += by_cause(lost, start.state)
        return tuple(Part(difference=d, source=other, engine=True) for d in found)

    def _explained_by(self, parts: Sequence[Part]) -> bool:
        """Whether a known difference explains what was observed, so that nothing is sought."""
        if self.observed_tau is None or not self.served or not parts:
            return False
        self.explained = self._within(self.observed_tau)
        return self.explained

    def _within(self, observed: float) -> bool:
        ends = [m.tau.interval for m in self.served]
        low = min(e.low if e else m.tau.value for e, m in zip(ends, self.served, strict=True))
        high = max(e.high if e else m.tau.value for e, m in zip(ends, self.served, strict=True))
        return low * (1 - TOLERANCE) <= observed <= high * (1 + TOLERANCE)

    # -- prices ------------------------------------------------------------------------------

    def _price(
        self,
        ideal: Variant,
        sound: Chains,
        start: Variant,
        parts: Sequence[Part],
        everything: Chains | None,
    ) -> None:
        every = list(parts)
        for steps in self._by_cause().values():
            undo = Difference(
                cause=steps[0].taken.change.cause,
                what="; ".join(step.taken.change.what for step in steps),
                facets=frozenset().union(*(step.taken.change.facets for step in steps)),
                roles=frozenset().union(*(step.taken.change.roles for step in steps)),
            )
            every.append(Part(difference=undo, source=start, engine=False))
        if not every:
            return
        self.say(f"pricing {len(every)} differences")
        if everything is None and not parts:  # nothing but the files' own faults
            everything = self._chains(start, every=False)
        self.prices = ablate(ideal, sound, everything, every, self.bench)

    def _by_cause(self) -> dict[CauseId, list[Step]]:
        found: dict[CauseId, list[Step]] = {}
        for step in () if self.swept is None else self.swept.steps:
            found.setdefault(step.taken.change.cause, []).append(step)
        return found

    # -- the causes --------------------------------------------------------------------------

    def _blame(
        self,
        files: Declared,
        held: Sequence[Content],
        start: Variant,
        now: Chains,
        sound: Chains,
    ) -> None:
        court, causes = self.court, self.causes
        stopped = self.refusal is not None
        if self.refusal is not None:
            causes.append(court.refused(self.refusal, _whole(sound)))
        for fault in files.faults:
            causes.append(court.static(fault.cause, fault.what, first=stopped))
        causes += self._of_contents(held, start, now)
        prices = {p.part.difference.cause: p for p in self.prices if not p.part.engine}
        for cause, steps in self._by_cause().items():
            causes.append(court.swept(steps, prices.get(cause)))
        for price in self.prices:
            if price.part.engine and price.felt:
                found = court.priced(price)
                causes.append(found)
            elif price.part.engine:
                self.notes.append(f"no round feels it: {price.part.difference.what}")
        if not causes:
            causes += self._suspected(start, now)
        if not causes and now.expected_tau < WEAK:
            found = court.cause(
                CauseId.WEAK_DRAFTER,
                Stage.TRAINED,
                [f"tau {now.expected_tau:.2f} from every position as trained"],
                score=1.0,
            )
            causes.append(found)

    def _of_contents(self, held: Sequence[Content], start: Variant, now: Chains) -> Iterable[Cause]:
        for content in held:
            if content.noise and self._needed(content.role, start, now):
                self.notes.append(f"{content.role} looks like noise, but drafts are worse without")
                continue
            yield self.court.static(content.cause, f"{content.role}: {content.what}")
        codes = {"W903": CauseId.WEIGHTS_REPEATED}
        for finding in () if self.report is None else self.report.findings:
            if finding.code in codes:
                yield self.court.static(codes[finding.code], finding.message)

    def _needed(self, role: str, start: Variant, now: Chains) -> bool:
        """Whether the drafts get worse when `role` is zero: then it is more than noise."""
        if role.startswith("lm_head"):
            return False
        zeroed = start.with_state({role: start.state[role] * 0})
        loss = now.gain_over(self._chains(zeroed), LEVEL)
        return loss.interval is not None and loss.interval.low > 0

    def _suspected(self, start: Variant, now: Chains) -> Iterable[Cause]:
        """RoPE unlike the target's, where the target's drafts no worse: weak, and named as such."""
        from eyas.diagnose.change import with_facts

        rope = self.bench.facts.rope
        codes = set() if self.report is None else {f.code for f in self.report.findings}
        if "T706" not in codes or rope is None:
            return
        other = self._chains(with_facts(start, rope=rope))
        gain = other.gain_over(now)
        if gain.value > 0:
            what = (
                f"the target's RoPE drafts no worse (closeness {gain.value:+.4f}); texts of"
                f" {max(len(t.ids) for t in self.bench.evidence.texts)} tokens are too short to"
                " tell bases apart for certain"
            )
            yield self.court.cause(CauseId.ROPE, Stage.SWEEP, [what], score=SUSPECT)

    def _chains(self, variant: Variant, *, every: bool = True) -> Chains:
        drafter = built(variant, self.bench.target)
        return chains(drafter, self.bench.evidence, self.steps, shift=variant.shift, every=every)

    # -- the end -----------------------------------------------------------------------------

    def closed(self, speeds: tuple[float, float] | None) -> Diagnosis:
        """The diagnosis of what was found."""
        if self.observed_tau is not None and self.served:
            self.explained = self._within(self.observed_tau)
            lowest = min(m.tau.value for m in self.served)
            if not self.explained and self.observed_tau < lowest:
                what = f"observed tau {self.observed_tau:.2f}, as served it gives {lowest:.2f}"
                gap = lowest - self.observed_tau
                price = Estimate(value=gap, interval=None)
                self.causes.append(
                    self.court.cause(
                        CauseId.ENGINE, Stage.SPEED, [what], returned=price, score=2 * gap
                    )
                )
        speed = self._speed(speeds)
        found = ranked(self.causes) or (
            self.court.cause(CauseId.NONE, Stage.SERVED, self._nothing(), score=0.0),
        )
        evidence = self.bench.evidence
        return Diagnosis(
            draft=self.checkpoint.location,
            target=str(self.bench.facts.location),
            engine=None if self.ref is None else str(self.ref),
            launch=tuple(f"{key}={value}" for key, value in self.launch.settings),
            steps=self.steps,
            positions=evidence.starts,
            texts=len(evidence.texts),
            causes=found,
            verdict=verdict(found, self.trained, self.served, self.ref, speed),
            trained=self.trained,
            repaired=self._repaired(),
            served=tuple(self.served),
            priced=tuple(_priced(price) for price in self.prices),
            tried=tuple(self._tried()),
            observed_tau=self.observed_tau,
            observed_rates=self.observed_rates,
            explained=self.explained,
            speed=speed,
            notes=tuple(self.notes),
        )

    def _nothing(self) -> list[str]:
        tried = 0 if self.swept is None else self.swept.tried
        return [f"{tried} other readings were tried, and none drafts better beyond chance"]

    def _repaired(self) -> Measure | None:
        if self.swept is None or not self.swept.steps:
            return None
        return measure("repaired", self.swept.chains)

    def _speed(self, speeds: tuple[float, float] | None) -> str | None:
        tau = self.observed_tau
        if tau is None and self.served:
            tau = self.served[0].tau.value
        if speeds is None or tau is None:
            return None
        speed = decompose(*speeds, tau, self.steps)
        if speed.costly:
            what = f"R {speed.round_cost:.2f} where {speed.usual_cost:.2f} is usual"
            self.causes.append(
                self.court.cause(CauseId.ENGINE_COST, Stage.SPEED, [what], score=SUSPECT)
            )
        return speed.sentence

    def _tried(self) -> Iterable[Tried]:
        if self.swept is None:
            return
        rounds = [(step.trials, True) for step in self.swept.steps] + [(self.swept.last, False)]
        for trials, taken in rounds:
            for number, trial in enumerate(trials):
                yield Tried(
                    cause=trial.change.cause,
                    what=trial.change.what,
                    gain=trial.gain,
                    expected_tau=trial.chains.expected_tau,
                    taken=taken and number == 0,
                )


def measure(label: str, found: Chains) -> Measure:
    """The numbers of chains."""
    return Measure(
        label=label,
        tau=found.tau,
        expected=found.expected,
        rates=found.rates,
        closeness=found.nearness,
    )


def _whole(sound: Chains) -> Estimate:
    return Estimate(value=sound.expected_tau - 1, interval=None)


def _priced(price: Price) -> Priced:
    return Priced(
        cause=price.part.difference.cause,
        what=price.part.difference.what,
        alone=price.alone,
        returned=price.returned,
        felt=price.felt,
    )
