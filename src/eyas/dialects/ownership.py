"""Whose embedding and whose head a drafter uses: its own, the target's, or one for both."""

from __future__ import annotations

from eyas.dialects.tensors import Tensors
from eyas.spec import Fact, Ownership, inferred


def read_embedding(tensors: Tensors) -> Fact[Ownership]:
    """The drafter's own where it is stored, else the target's."""
    role = "embed_tokens.weight"
    return inferred(Ownership.OWN if tensors.has(role) else Ownership.TARGET, tensors.place(role))


def read_head(
    tensors: Tensors, tied: Fact[bool] | None, *, reduced: bool, place: str
) -> Fact[Ownership]:
    """The head of a drafter whose vocabulary is `reduced` against the target's or not.

    `place` is where the size of the drafter's vocabulary is stated.
    """
    if tensors.has("lm_head.weight"):
        return inferred(Ownership.OWN, tensors.place("lm_head.weight"))
    if tied is not None and tied.value and tensors.has("embed_tokens.weight"):
        return tied.map(lambda _: Ownership.TIED)
    if not reduced:
        return inferred(Ownership.TARGET, tensors.place("lm_head.weight"))
    # A reduced vocabulary had a head of its own, which is not in the files.
    return inferred(Ownership.OWN, place)
