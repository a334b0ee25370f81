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
    is (len(tokens) - 1) / seconds. It is 0 where nothing was timed (a replay). `gaps`, if
    recorded, holds the target's top-2 logit difference at each token. `acceptance` is None without
    a drafter.
    """

    tokens: tuple[int, ...]
    seconds: float
    gaps: tuple[float, ...] | None
    acceptance: Acceptance | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first position at which two greedy answers differ, and how clear the choice was there.

    `gap` is the difference of the two highest logits; None where one answer goes on, or ends,
    without another token having been chosen: no rounding explains that.
    """

    position: int
    gap: float | None

    @property
    def numeric(self) -> bool:
        """Whether rounding explains it: the two highest logits were within `NEAR_TIE`."""
        return self.gap is not None and self.gap < NEAR_TIE

    @property
    def why(self) -> str:
        """How clear the choice was, in words."""
        if self.gap is None:
            return "where one of them ends"
        return f"where the two highest logits are {self.gap:.2g} apart"


def divergence(plain: Generation, drafted: Generation) -> Divergence | None:
    """Where `drafted` first departs from `plain`, whose gaps must be recorded; None if never."""
    if plain.gaps is None:
        raise ValueError("the plain generation was made without gaps")
    pairs = zip(plain.tokens, drafted.tokens, plain.gaps, strict=False)
    for position, (alone, together, gap) in enumerate(pairs):
        if alone != together:
            return Divergence(position=position, gap=gap)
    if len(plain.tokens) != len(drafted.tokens):
        return Divergence(position=min(len(plain.tokens), len(drafted.tokens)), gap=None)
    return None
