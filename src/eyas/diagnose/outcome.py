"""Diagnosis: what was found, in numbers that can be written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eyas.decode.interval import Estimate
from eyas.diagnose.causes import Cause, CauseId

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What one reading of the drafter accepts on the evidence.

    `tau` counts rounds as decoding makes them, `expected` every position as the start of one, with
    less noise. `rates` are the shares that accept at least 1, 2, … drafts; `closeness` tells
    readings apart that accept nothing (`chains.Chains`).
    """

    label: str
    tau: Estimate
    expected: Estimate
    rates: tuple[float, ...]
    closeness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMeasure:
    """What the drafter scores on stored states of its training, answers only.

    `accuracy` are the shares of each draft step alone, with the text's own tokens before it
    (teacher-forced), `cumulative` those of all steps up to it, which a greedy chain accepts
    (free-running): right is what the target's head makes of the stored final states.
    `expected_tau` is 1 + the sum of `cumulative`, every position the start of a round. `boundaries`
    and `target` are those that the store states. `apart` is how far its captured states are from
    those that the target of the diagnosis gives for the same ids, relative to these; `final_apart`
    the same of its final states.
    """

    accuracy: tuple[float, ...]
    cumulative: tuple[float, ...]
    expected_tau: float
    positions: int
    examples: int
    boundaries: tuple[int, ...]
    target: str
    apart: float
    final_apart: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A reading that the sweep tried: its gain in closeness and the tau it expects."""

    cause: CauseId
    what: str
    gain: Estimate
    expected_tau: float
    taken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A difference with its price in tau: alone, and what repairing it alone returns."""

    cause: CauseId
    what: str
    alone: Estimate | None
    returned: Estimate | None
    felt: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One answer of the target by its token ids, and which of them each reading had drafted."""

    id: str
    category: str
    ids: tuple[int, ...]
    trained: tuple[bool, ...]
    served: tuple[bool, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Where the acceptance was lost. `causes` are ranked, and hold at least one, maybe `none`.

    `trained` is the drafter as its files declare it, `training` the same on the states that it was
    trained on, where they were given, `repaired` after what the sweep found, and `served` as the
    engine has it, one for each fill of memory that nothing fills. What could not be run is None or
    empty, and `notes` say why.
    """

    draft: str
    target: str
    engine: str | None
    launch: tuple[str, ...]
    steps: int
    positions: int
    texts: int
    causes: tuple[Cause, ...]
    verdict: str
    trained: Measure | None
    training: TrainingMeasure | None
    repaired: Measure | None
    served: tuple[Measure, ...]
    priced: tuple[Priced, ...]
    tried: tuple[Tried, ...]
    samples: tuple[Sample, ...]
    observed_tau: float | None
    observed_rates: tuple[float, ...] | None
    explained: bool | None
    speed: str | None
    notes: tuple[str, ...]

    @property
    def first(self) -> Cause:
        """The cause that comes first."""
        return self.causes[0]

    @property
    def sound(self) -> bool:
        """Whether nothing is blamed."""
        return self.first.id is CauseId.NONE

    def json(self) -> dict[str, Any]:
        """The whole as plain values."""
        return {"schema_version": SCHEMA_VERSION, **asdict(self)}

    def text(self) -> str:
        """The whole as plain text, the verdict first."""
        lines = [self.verdict, ""]
        for number, cause in enumerate(self.causes, 1):
            lines.append(f"{number}. {cause.id}: {cause.sentence}")
            lines += [f"     {line}" for line in cause.evidence]
            if not self.sound:
                lines.append(f"     price: {price_text(cause)}")
            lines.append(f"     next: {cause.command}")
        lines.append("")
        for measure in (self.trained, self.repaired, *self.served):
            if measure is not None:
                lines.append(_measure_text(measure))
        if self.training is not None:
            lines.append(_training_text(self.training))
        if self.observed_tau is not None:
            lines.append(f"observed: tau {self.observed_tau:.2f}")
        if self.speed is not None:
            lines.append(self.speed)
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines) + "\n"


def price_text(cause: Cause) -> str:
    """What a cause costs, in words."""
    if cause.id in (CauseId.REFUSED, CauseId.ARCHITECTURE):
        return "everything: nothing is drafted"
    if cause.id is CauseId.ENGINE_COST:
        return "time, not acceptance"
    if cause.id is CauseId.WEAK_DRAFTER:
        return "what better training would give"
    if cause.alone is None and cause.returned is None:
        return "unknown: what belongs there is not in the files"
    parts = []
    if cause.alone is not None:
        parts.append(f"{estimate_text(cause.alone)} tau alone")
    if cause.returned is not None:
        parts.append(f"repairing it alone returns {estimate_text(cause.returned)}")
    return "; ".join(parts)


def estimate_text(estimate: Estimate) -> str:
    """A value and its interval."""
    if estimate.interval is None:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} ({estimate.interval.low:.2f} to {estimate.interval.high:.2f})"


def _measure_text(measure: Measure) -> str:
    return (
        f"{measure.label}: tau {estimate_text(measure.tau)} in rounds,"
        f" {estimate_text(measure.expected)} from every position;"
        f" accepted {shares_text(measure.rates)}"
    )


def _training_text(training: TrainingMeasure) -> str:
    return (
        f"on its training states: {shares_text(training.accuracy)} each step alone,"
        f" {shares_text(training.cumulative)} in a row; tau {training.expected_tau:.2f}"
        f" from every position of {training.examples} conversations"
    )


def shares_text(shares: Sequence[float]) -> str:
    """Shares by draft position, in per cent."""
    return ", ".join(f"{share:.0%}" for share in shares)
