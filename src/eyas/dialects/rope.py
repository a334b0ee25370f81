"""RoPE in its three spellings: rope_theta, rope_scaling, and transformers 5's rope_parameters."""

from __future__ import annotations

from typing import Any

from eyas.dialects.keys import Keys
from eyas.spec import Fact, Rope, assumed, declared

_NO_NUMBERS = ("type", "rope_type", "rope_theta")
# Older spellings of the kinds; "mrope" is the default one with sections for images.
_KINDS = {"mrope": "default", "su": "longrope"}


def read_rope(keys: Keys, *, theta: float, whose: str) -> Fact[Rope]:
    """The rotary embedding that `keys` states; `theta` is the base that `whose` code assumes."""
    parameters, scaling = keys.section("rope_parameters"), keys.section("rope_scaling")
    chosen = parameters if parameters.values else scaling
    stated = parameters.number("rope_theta") or keys.number("rope_theta")
    stated = stated or scaling.number("rope_theta")
    kind = chosen.text("rope_type") or chosen.text("type")
    name = kind.value if kind else "default"
    rope = Rope(
        theta=stated.value if stated else theta,
        kind=_KINDS.get(name, name),
        scaling={k: v for k, v in chosen.values.items() if k not in _NO_NUMBERS},
    )
    if stated is None:
        return assumed(rope, keys.place("rope_theta"), whose=whose)
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
