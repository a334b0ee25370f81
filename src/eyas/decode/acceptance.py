"""Acceptance: what verification accepted, in numbers that say how they are counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eyas.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The counts of a number of rounds, each one draft and one verification.

    `accepted_at[i]` is the number of rounds that accepted at least i + 1 of their `steps` draft
    tokens. The token that the target adds in every round (the bonus) is in none of the counts.
    A round that runs past the end of an answer counts what verification accepted.
    """

    steps: int
    rounds: int
    accepted_at: tuple[int, ...]

    @classmethod
    def of(cls, steps: int, accepted: Iterable[int]) -> Acceptance:
        """The record of rounds that accepted these numbers of draft tokens, each 0 to `steps`."""
        counts = [0] * (steps + 1)
        for number in accepted:
            counts[number] += 1
        at_least = [sum(counts[i + 1 :]) for i in range(steps)]
        return cls(steps=steps, rounds=sum(counts), accepted_at=tuple(at_least))

    @classmethod
    def total(cls, records: Sequence[Acceptance]) -> Acceptance:
        """All rounds of at least one record; UsageError when their chains differ in length."""
        total = records[0]
        for record in records[1:]:
            total += record
        return total

    @property
    def accepted(self) -> int:
        """Draft tokens accepted, over all rounds."""
        return sum(self.accepted_at)

    @property
    def tau(self) -> float | None:
        """Mean acceptance length, 1 + accepted / rounds: the bonus included.

        1.00 means that no draft token was ever accepted; None that there was no round at all.
        """
        return None if self.rounds == 0 else 1 + self.accepted / self.rounds

    @property
    def cumulative(self) -> tuple[float, ...]:
        """Share of the rounds that accepted at least 1, 2, … draft tokens."""
        return tuple(n / self.rounds for n in self.accepted_at) if self.rounds else ()

    @property
    def conditional(self) -> tuple[float | None, ...]:
        """Acceptance at each position among the rounds that came so far; None where none did."""
        came = (self.rounds, *self.accepted_at[:-1])
        return tuple(n / c if c else None for n, c in zip(self.accepted_at, came, strict=True))

    def __add__(self, other: Acceptance) -> Acceptance:
        """All rounds of both; UsageError when their chains differ in length."""
        if self.steps != other.steps:
            raise UsageError(
                f"rounds of {self.steps} and of {other.steps} draft tokens cannot be added"
            )
        pairs = zip(self.accepted_at, other.accepted_at, strict=True)
        return Acceptance(
            steps=self.steps,
            rounds=self.rounds + other.rounds,
            accepted_at=tuple(a + b for a, b in pairs),
        )


def informative(
    records: Iterable[tuple[str, Acceptance | None]],
) -> dict[str, list[Acceptance]]:
    """The records of each category that hold a round; the others say nothing of a drafter."""
    found: dict[str, list[Acceptance]] = defaultdict(list)
    for category, record in records:
        if record is not None and record.rounds:
            found[category].append(record)
    return dict(found)


def tau_of(records: Sequence[Acceptance]) -> float:
    """tau over all rounds of records that hold at least one."""
    tau = Acceptance.total(records).tau
    if tau is None:
        raise UsageError("there is no round to take tau of")
    return tau


def macro_mean(taus: Iterable[float]) -> float:
    """The plain mean of each category's tau, so that long answers do not outvote short ones."""
    values = tuple(taus)
    if not values:
        raise UsageError("there is no category to average over")
    return sum(values) / len(values)
