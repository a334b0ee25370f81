"""The verdict: one paragraph of cause, evidence, price and command."""

from __future__ import annotations

from collections.abc import Sequence

from eyas.diagnose.causes import Cause, CauseId
from eyas.diagnose.outcome import Measure, TrainingMeasure, price_text
from eyas.engines import EngineRef

LEAST = 0.1  # of tau alone: less is not worth a sentence


def verdict(
    causes: Sequence[Cause],
    trained: Measure | None,
    served: Sequence[Measure],
    ref: EngineRef | None,
    speed: str | None,
    *,
    training: TrainingMeasure | None = None,
) -> str:
    """What a reader needs who reads nothing else."""
    first = causes[0]
    sentences = [_taus(trained, training, served, ref)] if trained is not None else []
    if first.id is CauseId.NONE:
        sentences.append(f"Nothing is blamed: {'; '.join(first.evidence)}.")
    else:
        sentences.append(f"{_capital(first.sentence)} ({first.id}): {first.evidence[0]}.")
        sentences.append(f"Price: {price_text(first)}.")
    for other in causes[1:3]:
        sentences.append(f"Then {other.id}: {other.sentence}; {price_text(other)}.")
    masked = [cause for cause in causes if _masked(cause)]
    if len(masked) > 1:
        which = " and ".join(str(cause.id) for cause in masked[:3])
        sentences.append(f"Repair {which} together: each hides what the other costs.")
    if speed is not None:
        sentences.append(speed)
    sentences.append(f"Next: {first.command}")
    return " ".join(sentences)


def _masked(cause: Cause) -> bool:
    """Whether repairing it alone returns less than half of what it costs alone."""
    if cause.alone is None or cause.returned is None or cause.alone.value < LEAST:
        return False
    return cause.returned.value < cause.alone.value / 2


def _taus(
    trained: Measure,
    training: TrainingMeasure | None,
    served: Sequence[Measure],
    ref: EngineRef | None,
) -> str:
    text = f"As trained this drafter gives tau {trained.tau.value:.2f}"
    if training is not None:
        text += f" ({training.expected_tau:.2f} on its training states)"
    if not served:
        return f"{text}."
    taus = [measure.tau.value for measure in served]
    low, high = min(taus), max(taus)
    found = f"{low:.2f}" if high - low < 0.005 else f"{low:.2f} to {high:.2f}"
    return f"{text}; as {ref} serves it, {found}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
