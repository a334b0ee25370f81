"""Record: a number of answers in numbers, with what they are to be compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eyas.decode.acceptance import Acceptance
from eyas.decode.generation import Generation
from eyas.engines.metric import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Forwards of the target after each prompt's own, the tokens they gave, and their seconds."""

    forwards: int
    tokens: int
    seconds: float

    @classmethod
    def of(cls, generations: Iterable[Generation]) -> Pace:
        """The pace of these answers; a plain answer is one forward a token."""
        forwards = tokens = 0
        seconds = 0.0
        for generation in generations:
            after_first = len(generation.tokens) - 1
            record = generation.acceptance
            forwards += after_first if record is None else record.rounds
            tokens += after_first
            seconds += generation.seconds
        return cls(forwards=forwards, tokens=tokens, seconds=seconds)

    @property
    def tokens_per_second(self) -> float | None:
        """The decoding rate; None where nothing was decoded."""
        return self.tokens / self.seconds if self.seconds and self.tokens else None

    @property
    def seconds_per_forward(self) -> float | None:
        """What one forward costs, with the drafting before it."""
        return self.seconds / self.forwards if self.forwards else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Answers with a drafter, or without one (`acceptance` is None).

    `delivered` counts every token of the answers, the one from each prompt's forward pass
    included. `plain` is the target alone on the same prompts, timed in the same run; without it
    nothing is known of the round-cost ratio.
    """

    requests: int
    delivered: int
    pace: Pace
    acceptance: Acceptance | None
    plain: Pace | None

    @classmethod
    def of(
        cls, generations: Sequence[Generation], plain: Sequence[Generation] | None = None
    ) -> Record:
        """The record of at least one answer; `plain` holds the target's own to the same prompts.

        Raises UsageError when chains of different length are mixed.
        """
        records = [g.acceptance for g in generations if g.acceptance is not None]
        return cls(
            requests=len(generations),
            delivered=sum(len(g.tokens) for g in generations),
            pace=Pace.of(generations),
            acceptance=Acceptance.total(records) if records else None,
            plain=None if plain is None else Pace.of(plain),
        )

    @property
    def round_cost(self) -> float | None:
        """R: seconds of a round over seconds of a plain decode step; None without a baseline."""
        if self.acceptance is None or self.plain is None:
            return None
        ours, alone = self.pace.seconds_per_forward, self.plain.seconds_per_forward
        return ours / alone if ours is not None and alone else None

    @property
    def speedup(self) -> float | None:
        """Decoding rate over the baseline's; it is tau / R but for the ends of the answers."""
        if self.acceptance is None or self.plain is None:
            return None
        ours, alone = self.pace.tokens_per_second, self.plain.tokens_per_second
        return ours / alone if ours is not None and alone else None

    @property
    def tally(self) -> Tally | None:
        """The counts that engines' own numbers are made of; None without a drafter."""
        if self.acceptance is None:
            return None
        return Tally(
            steps=self.acceptance.steps,
            rounds=self.acceptance.rounds,
            accepted_at=self.acceptance.accepted_at,
            requests=self.requests,
            delivered=self.delivered,
        )

    def lines(self) -> tuple[str, ...]:
        """The record as lines that say how each number is counted."""
        rate = self.pace.tokens_per_second
        speed = "" if rate is None else f", {rate:.1f} tokens/s without the prompt's own forward"
        first = f"{self.delivered} tokens in {self.pace.seconds:.2f} s{speed}"
        record = self.acceptance
        if record is None:
            return (first,)
        if record.tau is None:
            return (first, "tau: no round was drafted, so nothing is known of the drafter")
        return (
            first,
            f"tau {record.tau:.3f}: 1 + {record.accepted} accepted / {record.rounds} rounds of "
            f"{record.steps} drafts, the bonus token included",
            "rounds that accepted at least 1, 2, …: " + _shares(record.cumulative),
            "of those that came so far, accepted: " + _shares(record.conditional),
            self._cost_line(),
        )

    def _cost_line(self) -> str:
        if self.round_cost is None or self.speedup is None:
            return "R (cost of a round in plain steps): not measured, as there was no baseline"
        return (
            f"R {self.round_cost:.2f}: a round costs that many plain steps; "
            f"{self.speedup:.2f}x the speed of the target alone"
        )


def _shares(rates: Iterable[float | None]) -> str:
    return ", ".join("-" if rate is None else f"{rate:.1%}" for rate in rates)
