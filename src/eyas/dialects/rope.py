"""RoPE in its three spellings: rope_theta, rope_scaling, and transformers 5's rope_parameters."""

from __future__ import annotations

from typing import Any

from eyas.dialects.keys import Keys
from eyas.spec import Fact, Rope, assumed, declared


def read_rope(keys: Keys, *, theta: float, whose: str) -> Fact[Rope]:
    """The rotary embedding that `keys` states; `theta` is the base that `whose` code assumes.

    Where both tables are there the newer spelling holds, `rope_parameters`; an engine may choose
    the other. Where they contradict each other, the fact's key says against what it was chosen.
    """
    parameters, scaling = keys.section("rope_parameters"), keys.section("rope_scaling")
    chosen = parameters if parameters.values else scaling
    stated = parameters.number("rope_theta") or keys.number("rope_theta")
    stated = stated or scaling.number("rope_theta")
    for key in ("rope_type", "type"):
        chosen.text(key)  # raises for a kind that is no text
    base = stated.value if stated else theta
    rope = Rope.of_table(base, chosen.values)
    if stated is None:
        return assumed(rope, keys.place("rope_theta"), whose=whose)
    leftover = parameters.values and scaling.values
    if leftover and Rope.of_table(base, scaling.values) != rope:
        return declared(rope, f"{stated.key}, against {keys.place('rope_scaling')}")
    return declared(rope, stated.key)


def rope_keys(rope: Rope) -> dict[str, Any]:
    """`rope` in all three spellings, which agree: old and new readers find their own."""
    scaling = {"rope_type": rope.kind, **rope.scaling}
    plain = rope.kind == "default" and not rope.scaling
    return {
        "rope_theta": rope.theta,
        "rope_scaling": None if plain else dict(scaling),
        "rope_parameters": {"rope_theta": rope.theta, **scaling},
    }
