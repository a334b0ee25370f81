"""RopeReach: the rotary embeddings that a producer's code builds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from eyas.spec import Rope

_BASE = 10000.0  # of LlamaRotaryEmbedding where nothing else is given


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeReach:
    """What a producer's code builds of a rotary embedding.

    `numbers` are those that each kind takes, all of them and no other; without any the code builds
    whatever transformers does. `fixed` are the kinds that it builds with base 10000, whatever
    rope_theta says, and `stretches` says whether a factor must be more than 1.
    """

    numbers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    stretches: bool = False

    def lack(self, rope: Rope) -> tuple[str, str] | None:
        """A fact of `rope` that the code does not compute, and what it does; None where it does."""
        if not self.numbers:
            return None
        if rope.kind not in self.numbers:
            *first, last = self.numbers
            known = f"{', '.join(first)} and {last}" if first else last
            return f"RoPE of the kind {rope.kind}", f"builds {known} alone"
        if rope.kind in self.fixed and rope.theta != _BASE:
            return (
                f"rope_theta {rope.theta:g} with RoPE of the kind {rope.kind}",
                "builds that kind with 10000",
            )
        taken = self.numbers[rope.kind]
        for number in sorted(set(rope.scaling) - taken):
            return f"{number} of RoPE of the kind {rope.kind}", "takes no such number"
        for number in sorted(taken - set(rope.scaling)):
            return f"RoPE of the kind {rope.kind} without {number}", "needs it"
        factor = rope.scaling.get("factor")
        if self.stretches and factor is not None and not _above_one(factor):
            return f"factor {factor} of RoPE", "takes a number above 1"
        return None


def _above_one(factor: object) -> bool:
    return isinstance(factor, int | float) and factor > 1


def type_and_factor(rope: Rope) -> Mapping[str, Any]:
    """The keys of `rope` for code that takes a rope_scaling of a type and a factor alone."""
    keys: dict[str, Any] = {"rope_theta": rope.theta, "rope_scaling": None}
    factor = rope.scaling.get("factor")
    if rope.kind != "default" and isinstance(factor, int | float):
        keys["rope_scaling"] = {"type": rope.kind, "factor": float(factor)}
    return keys


_SCALED = frozenset({"linear", "dynamic"})
_FACTOR = frozenset({"factor"})
LLAMA3 = _FACTOR | {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}
YARN = _FACTOR | {
    "original_max_position_embeddings",
    "beta_fast",
    "beta_slow",
    "mscale",
    "mscale_all_dim",
}

TRANSFORMERS = RopeReach()
# EAGLE's attention, of which AngelSlim has a copy: rope_scaling is a type and a factor, and such a
# RoPE has the default base (eagle/model/cnets.py at 148042c, LlamaAttention._init_rope;
# eagle/model/configs.py, EConfig._rope_scaling_validation; AngelSlim 0.5.0,
# compressor/speculative/inference/models/eagle3/draft/llama3_eagle3.py:236-260).
FACTOR_ALONE = RopeReach(
    numbers={"default": frozenset(), "linear": _FACTOR, "dynamic": _FACTOR},
    fixed=_SCALED,
    stretches=True,
)
# torchspec/models/draft/llama3_eagle.py at 1135681, build_rotary_embedding
TORCHSPEC = RopeReach(
    numbers={
        "default": frozenset(),
        "linear": _FACTOR,
        "dynamic": _FACTOR,
        "llama3": LLAMA3,
        "yarn": YARN,
    },
    fixed=_SCALED,
)
