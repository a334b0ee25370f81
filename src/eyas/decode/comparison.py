"""Comparison: answers with a drafter against the target's own, by one rule for all of eyas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eyas.decode.generation import Divergence, Generation, divergence

# Rounding may decide at most one position in so many.
RARE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Where each drafted answer first departs from the target's own, None where it never does.

    `positions` is the number of tokens in the target's own answers.
    """

    positions: int
    departures: tuple[Divergence | None, ...]

    @classmethod
    def of(cls, plain: Sequence[Generation], drafted: Sequence[Generation]) -> Comparison:
        """The comparison of float32 answers to the same prompts; `plain` must have its gaps."""
        pairs = zip(plain, drafted, strict=True)
        return cls(
            positions=sum(len(answer.tokens) for answer in plain),
            departures=tuple(divergence(alone, together) for alone, together in pairs),
        )

    @property
    def equal(self) -> int:
        """How many answers are the target's own, token for token."""
        return self.departures.count(None)

    @property
    def exact(self) -> bool:
        """Whether rounding explains every departure, and no more than one position in `RARE`."""
        found = [d for d in self.departures if d is not None]
        return all(d.numeric for d in found) and len(found) * RARE <= self.positions

    def lines(self) -> tuple[str, ...]:
        """Every departure in a line; none where all answers are equal."""
        return tuple(
            f"answer {number} departs from the target's own at token {found.position + 1}, "
            + found.why
            for number, found in enumerate(self.departures, 1)
            if found is not None
        )
