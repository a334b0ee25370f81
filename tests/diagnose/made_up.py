"""A diagnosis with everything that a page can show, and names that somebody made up to harm it."""

from __future__ import annotations

from eyas.decode.interval import Estimate, Interval
from eyas.diagnose.causes import Cause, CauseId, Stage
from eyas.diagnose.outcome import Diagnosis, Measure, Priced, Sample, TrainingMeasure, Tried
from eyas.spec import (
    Fate,
    FromTarget,
    FromTensor,
    Initialisation,
    Landing,
    ParameterLanding,
    Segment,
    TensorLanding,
    Unfilled,
)

HARMFUL = '<script>alert("x")</script>'
WORDS = ("The", " cat", " <b>", " sat", " down", ".")


def decode(ids: object) -> str:
    """Token i is the i-th of `WORDS`."""
    assert isinstance(ids, list | tuple)
    return "".join(WORDS[i] for i in ids)


def estimate(value: float) -> Estimate:
    return Estimate(value=value, interval=Interval(low=value - 0.1, high=value + 0.1))


def measure(label: str, tau: float, rates: tuple[float, ...]) -> Measure:
    return Measure(
        label=label, tau=estimate(tau), expected=estimate(tau), rates=rates, closeness=0.5
    )


def cause(name: CauseId, price: float, what: str = HARMFUL) -> Cause:
    return Cause(
        id=name,
        sentence="a decoder layer of the drafter is not loaded",
        evidence=(what, "config.json :: a'key\"<img src=http://example.com/x.png>\x1b[31m\u202e"),
        alone=estimate(price),
        returned=estimate(price / 10),
        score=price,
        command=f"eyas convert './{HARMFUL}' ./out --to sglang@0.5.10.post1",
        stage=Stage.SERVED,
    )


def priced(name: CauseId, alone: float, returned: float) -> Priced:
    return Priced(
        cause=name, what=HARMFUL, alone=estimate(alone), returned=estimate(returned), felt=True
    )


TRAINING = TrainingMeasure(
    accuracy=(0.74, 0.61, 0.5),
    cumulative=(0.74, 0.47, 0.25),
    expected_tau=2.46,
    positions=9000,
    examples=64,
    boundaries=(2, 15, 27),
    target=HARMFUL,
    apart=1e-6,
    final_apart=1e-6,
)

DIAGNOSIS = Diagnosis(
    draft=f"./{HARMFUL}",
    target="</dd><iframe src='http://example.com'>",
    engine="sglang@0.5.10.post1",
    launch=("speculative_algorithm=EAGLE",),
    steps=3,
    positions=100,
    texts=2,
    causes=(cause(CauseId.FUSION_BYPASSED, 0.8), cause(CauseId.LAYER_LOST, 0.7)),
    verdict=f"As trained this drafter gives tau 2.00. {HARMFUL}",
    trained=measure("as trained", 2.0, (0.6, 0.3, 0.1)),
    training=None,
    repaired=None,
    served=(
        measure(
            "as served by sglang@0.5.10.post1, memory filled with normal", 1.1, (0.08, 0.02, 0.0)
        ),
        measure(
            "as served by sglang@0.5.10.post1, memory filled with zeros", 1.2, (0.16, 0.04, 0.0)
        ),
    ),
    priced=(priced(CauseId.FUSION_BYPASSED, 0.8, 0.1), priced(CauseId.LAYER_LOST, 0.7, 0.05)),
    tried=(
        Tried(
            cause=CauseId.ROPE,
            what=f"theta of {HARMFUL}",
            gain=estimate(0.1),
            expected_tau=1.5,
            taken=False,
        ),
    ),
    samples=(
        Sample(
            id=HARMFUL,
            category="math</span>",
            ids=(0, 1, 2, 3, 4, 5),
            trained=(False, True, True, False, True, False),
            served=(False, True, False, True, False, False),
        ),
    ),
    observed_tau=1.1,
    observed_rates=(0.1, 0.0),
    explained=True,
    speed="25 tok/s against 90 is a speed-up of 0.28.",
    notes=(f"no round feels it: {HARMFUL}",),
)


def _filled(name: str, source: FromTensor | Unfilled, **more: FromTarget) -> ParameterLanding:
    segment = Segment(start=0, stop=8, source=source, role=None)
    return ParameterLanding(name=name, shape=(8, 8), segments=(segment,), **more)


LANDING = Landing(
    tensors=(
        TensorLanding(
            name="fc.weight", shape=(8, 8), dtype="F32", fate=Fate.LANDED, parameters=("fc",)
        ),
        TensorLanding(name=f"layers.0.{HARMFUL}", shape=(8, 8), dtype="F32", fate=Fate.LOST),
    ),
    parameters=(
        _filled("fc", FromTensor(tensor="fc.weight")),
        _filled("midlayer.q_proj", Unfilled(initialisation=Initialisation.MEMORY)),
        _filled(
            "embed_tokens",
            Unfilled(initialisation=Initialisation.RANDOM),
            replaced=FromTarget(what="embedding"),
        ),
    ),
)
