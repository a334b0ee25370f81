"""Observed speed taken apart: how much of it is tau's, and how much is what a round costs.

speedup = tau / R, where R is the time of one round in plain decode steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from eyas.errors import UsageError

# A line through published runs of Llama-3.1-8B on an H100 in vLLM: R = 1.18 + 0.144 K.
R_FIRST, R_EACH = 1.18, 0.144
SPREAD = 0.1  # what engines and targets differ by around it, as a share
COSTLY = 1.5  # so many times the usual R is a cost of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Tokens a second with and without speculation, and what follows for tau and R."""

    drafted: float
    plain: float
    tau: float
    steps: int

    def __post_init__(self) -> None:
        """Raises UsageError for a rate or a tau that cannot be."""
        if min(self.drafted, self.plain) <= 0 or self.tau < 1:
            raise UsageError(
                f"{self.drafted:g} and {self.plain:g} tokens/s at tau {self.tau:g} cannot be:"
                " rates are above 0 and tau is at least 1"
            )

    @property
    def speedup(self) -> float:
        """The rate with speculation over the one without."""
        return self.drafted / self.plain

    @property
    def round_cost(self) -> float:
        """R: seconds of a round over seconds of a plain step."""
        return self.tau / self.speedup

    @property
    def usual_cost(self) -> float:
        """The R that chains of this length have in published runs."""
        return R_FIRST + R_EACH * self.steps

    @property
    def costly(self) -> bool:
        """Whether a round costs far more than usual."""
        return self.round_cost > COSTLY * self.usual_cost

    @property
    def sentence(self) -> str:
        """Both, in words."""
        usual = self.plain * self.tau / self.usual_cost
        low, high = usual / (1 + SPREAD), usual / (1 - SPREAD)
        text = (
            f"{self.drafted:g} tok/s against {self.plain:g} is a speed-up of {self.speedup:.2f}:"
            f" tau {self.tau:.2f} over R {self.round_cost:.2f}, the cost of a round in plain steps."
            f" Rounds of {self.steps} drafts usually cost {self.usual_cost:.2f}, so tau"
            f" {self.tau:.2f} explains {low:.0f} to {high:.0f} tok/s"
        )
        if not self.costly:
            return f"{text}."
        times = self.round_cost / self.usual_cost
        return (
            f"{text}; a round costs {times:.1f} times what it should: look at graphs, tree width"
            " and the attention backend."
        )


def decompose(drafted: float, plain: float, tau: float, steps: int) -> Speed:
    """The observed rates, in tokens a second, beside `tau` of chains of `steps`."""
    return Speed(drafted=drafted, plain=plain, tau=tau, steps=steps)
