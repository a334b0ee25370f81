"""One answer: its tokens, how long they took, and what verification accepted on the way."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.decode.acceptance import Acceptance

# Below this difference between the two highest logits, float32 rounding may decide which of two
# tokens is the argmax, and a forward of one token and one of several may decide differently.
NEAR_TIE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The new tokens of one greedy answer.

    `seconds` excludes the prompt's forward pass; the first token comes from that pass, so a rate
    is (len(tokens) - 1) / seconds. `gaps`, if recorded, holds the target's top-2 logit difference
    at each token. `acceptance` is None without a drafter.
    """

    tokens: tuple[int, ...]
    seconds: float
    gaps: tuple[float, ...] | None
    acceptance: Acceptance | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first position at which two greedy answers differ, and how clear the choice was there."""

    position: int
    gap: float

    @property
    def numeric(self) -> bool:
        """Whether rounding explains it: the two highest logits were within `NEAR_TIE`."""
        return self.gap < NEAR_TIE


def divergence(plain: Generation, drafted: Generation) -> Divergence | None:
    """Where `drafted` first departs from `plain`, whose gaps must be recorded; None if never."""
    if plain.gaps is None:
        raise ValueError("the plain generation was made without gaps")
    for position, gap in enumerate(plain.gaps):
        same = position < len(drafted.tokens) and drafted.tokens[position] == plain.tokens[position]
        if not same:
            return Divergence(position=position, gap=gap)
    return None
