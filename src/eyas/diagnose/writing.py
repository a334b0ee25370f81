"""A judged case as a Diagnosis: numbers and words, no tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eyas.diagnose.ablation import Price
from eyas.diagnose.causes import CauseId, Stage
from eyas.diagnose.chains import Chains
from eyas.diagnose.outcome import Diagnosis, Measure, Priced, Sample, Tried
from eyas.diagnose.ranking import ranked
from eyas.diagnose.speed import Speed
from eyas.diagnose.sweep import Sweep
from eyas.diagnose.verdict import verdict

if TYPE_CHECKING:
    from eyas.diagnose.diagnosis import Case


def written(case: Case, speed: Speed | None) -> Diagnosis:
    """The diagnosis of `case`, with `none` as its cause where nothing was found."""
    nothing = [_fruitless(case.swept)]
    if not case.served.runs:
        nothing.append("no engine was judged: this is about the files alone")
    causes = ranked(case.causes) or (
        case.court.cause(CauseId.NONE, Stage.SWEEP, nothing, score=0.0),
    )
    trained = None if case.trained is None else measure("as trained", case.trained)
    served = tuple(measure(label, found) for label, found in case.served.runs.items())
    repaired = case.swept is not None and bool(case.swept.steps)
    evidence = case.bench.evidence
    sentence = None if speed is None else speed.sentence
    return Diagnosis(
        draft=case.checkpoint.location,
        target=str(case.bench.facts.location),
        engine=None if case.ref is None else str(case.ref),
        launch=tuple(f"{key}={value}" for key, value in case.launch.settings),
        steps=case.steps,
        positions=evidence.starts,
        texts=len(evidence.texts),
        causes=causes,
        verdict=verdict(causes, trained, served, case.ref, sentence, training=case.training),
        trained=trained,
        training=case.training,
        repaired=measure("repaired", case.swept.chains) if case.swept and repaired else None,
        served=served,
        priced=tuple(_priced(price) for price in case.prices),
        tried=tuple(_tried(case.swept)),
        samples=tuple(_samples(case)),
        observed_tau=case.observed_tau,
        observed_rates=case.observed_rates,
        explained=case.explained,
        speed=sentence,
        notes=tuple(case.notes),
    )


def _fruitless(swept: Sweep | None) -> str:
    """What the sweep says where nothing is blamed."""
    if swept is not None and not swept.tried and swept.thin is not None:
        return swept.thin
    if swept is None:
        return "what was observed is what is served: no other reading was tried"
    return f"{swept.tried} other readings were tried, and none drafts better beyond chance"


def measure(label: str, found: Chains) -> Measure:
    """The numbers of chains."""
    return Measure(
        label=label,
        tau=found.tau,
        expected=found.expected,
        rates=found.rates,
        closeness=found.nearness,
    )


def _priced(price: Price) -> Priced:
    return Priced(
        cause=price.part.difference.cause,
        what=price.part.difference.what,
        alone=price.alone,
        returned=price.returned,
        felt=price.felt,
    )


def _tried(swept: Sweep | None) -> Iterator[Tried]:
    if swept is None:
        return
    rounds = [(step.trials, True) for step in swept.steps] + [(swept.last, False)]
    for trials, taken in rounds:
        for number, trial in enumerate(trials):
            yield Tried(
                cause=trial.change.cause,
                what=trial.change.what,
                gain=trial.gain,
                expected_tau=trial.chains.expected_tau,
                taken=taken and number == 0,
            )


def _samples(case: Case) -> Iterator[Sample]:
    """The first answer of each category."""
    seen: set[str] = set()
    served = case.served.chains
    for number, text in enumerate(case.bench.evidence.texts):
        if case.trained is None or text.category in seen:
            continue
        seen.add(text.category)
        yield Sample(
            id=text.id,
            category=text.category,
            ids=text.ids[text.prompt : text.prompt + text.answer],
            trained=case.trained.drafted(number),
            served=None if served is None else served.drafted(number),
        )
