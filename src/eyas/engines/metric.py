"""What an engine would report of given rounds: one number, under the engine's own name for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eyas.engines.version import Version
from eyas.spec import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The counts that every engine's numbers are made of.

    `accepted_at[i]` rounds accepted at least i + 1 of their `steps` drafts. `delivered` counts the
    tokens of all answers, the first of each from the prompt's forward pass included; tokens that
    verification accepted past the end of an answer are in `accepted_at` but not in it.
    """

    steps: int
    rounds: int
    accepted_at: tuple[int, ...]
    requests: int
    delivered: int

    @property
    def accepted(self) -> int:
        """Draft tokens accepted."""
        return sum(self.accepted_at)

    @property
    def drafted(self) -> int:
        """Draft tokens proposed."""
        return self.rounds * self.steps

    @property
    def histogram(self) -> tuple[int, ...]:
        """Rounds that accepted exactly 0, 1, … `steps` drafts."""
        at_least = (self.rounds, *self.accepted_at, 0)
        return tuple(at_least[i] - at_least[i + 1] for i in range(self.steps + 1))


MetricValue = int | float | tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number of an engine: where it stands, its name, its value, the source line of its rule.

    `value` is None where the engine would not show the number at all. `caution` says where the
    number is known to mislead.
    """

    where: str
    name: str
    value: MetricValue | None
    claim: Claim
    caution: str | None = None

    @property
    def text(self) -> str:
        """The value as a reader wants it: counts whole, ratios to three places."""
        if self.value is None:
            return "not shown"
        if isinstance(self.value, tuple):
            return f"[{', '.join(_number(v) for v in self.value)}]"
        return _number(self.value)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"


# Takes a version of the engine within its known range.
Meter = Callable[[Version, Tally], tuple[Metric, ...]]


def ratio(numerator: int, denominator: int) -> float | None:
    """A quotient, or None over nothing."""
    return numerator / denominator if denominator else None
