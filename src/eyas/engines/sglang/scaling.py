"""What SGLang needs to find in a RoPE scaling, version by version, before it builds the drafter."""

from __future__ import annotations

from eyas.engines.config import ConfigView
from eyas.engines.sglang import claims
from eyas.engines.sglang.contract import Contract
from eyas.engines.stop import Refused
from eyas.spec import Fact, Rope, Stage

_LENGTH = "original_max_position_embeddings"
# By kind, what is looked up without a default.
_LOOKED_UP = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", _LENGTH),
    "yarn": ("factor", _LENGTH),
    "deepseek_yarn": ("factor", _LENGTH),
    "longrope": ("short_factor", "long_factor", _LENGTH),
}
# The same from 0.5.10 on: the others have defaults.
_STILL_LOOKED_UP = {"longrope": ("short_factor", "long_factor")}


def require_scaling(rope: Fact[Rope], config: ConfigView, contract: Contract) -> None:
    """Refuse a kind of scaling that is not known, or that lacks what is looked up in it."""
    kind, scaling = rope.value.kind, rope.value.scaling
    if kind not in _LOOKED_UP:
        if kind == "proportional" and contract.proportional_rope:
            return
        raise Refused(
            Stage.CONSTRUCT,
            f"{rope.key} is of the kind {kind}, which this version does not know",
            claims.scaling(contract),
        )
    if kind == "default" and not contract.scaling_defaults and scaling and not _names_kind(config):
        raise Refused(
            Stage.CONSTRUCT, f"{rope.key} names no kind of scaling", claims.scaling(contract)
        )
    table = _STILL_LOOKED_UP if contract.scaling_defaults else _LOOKED_UP
    for name in table.get(kind, ()):
        given = name in scaling or (name == _LENGTH and config.get(_LENGTH))
        if not given:
            raise Refused(
                Stage.CONSTRUCT,
                f"{rope.key} is of the kind {kind} and has no {name}",
                claims.scaling(contract),
            )


def _names_kind(config: ConfigView) -> bool:
    table = config.table("rope_scaling")
    return "rope_type" in table or "type" in table
