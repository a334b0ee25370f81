"""Tensor names ↔ roles. A role is the tensor's name in `model.Drafter`.

Producers call the decoder layer ``layers.0.`` or ``midlayer.``, and wrappers leave their own
prefixes in front: ``model.`` (NeMo Automodel), ``module.`` (DDP), ``_orig_mod.`` (torch.compile),
``draft_model.``. All other names are the same everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WRAPPERS = ("model", "module", "draft_model")
_LEGACY = {  # SGLang 0.5.23, srt/models/llama_eagle3.py:325-378
    "aux_norm_low.weight": "fc_norm.0.weight",
    "aux_norm_mid.weight": "fc_norm.1.weight",
    "aux_norm_high.weight": "fc_norm.2.weight",
}
_OUTER = re.compile(
    r"fc\.(weight|bias)|(norm|lm_head|embed_tokens|input_norm)\.weight|fc_norm\.\d{1,3}\.weight"
    r"|d2t|t2d"
)
# What a DFlash drafter, and a DSpark one with its heads, has outside of its layers.
BLOCK_OUTER = re.compile(
    r"fc\.weight|(norm|hidden_norm|lm_head|embed_tokens)\.weight|d2t|t2d"
    r"|markov_head\.(markov_w1|markov_w2)\.weight"
    r"|(markov_head\.(gate_proj|joint_proj)|confidence_head\.proj)\.(weight|bias)"
)
_INNER = re.compile(
    r"self_attn\.(q|k|v|o|qkv)_proj\.(weight|bias)"
    r"|self_attn\.(q|k)_norm\.weight"
    r"|self_attn\.(q_a_proj|q_b_proj|kv_a_proj_with_mqa|kv_b_proj)\.weight"
    r"|self_attn\.(q_a|kv_a)_layernorm\.weight"
    r"|mlp\.(gate|up|down|gate_up)_proj\.weight"
    r"|(input_layernorm|hidden_norm|post_attention_layernorm)\.weight"
)
_LAYER = re.compile(r"(?P<prefix>layers\.\d{1,4}|midlayer(?:\.\d{1,4})?)\.(?P<rest>.+)")
FUSED = ("self_attn.qkv_proj.weight", "mlp.gate_up_proj.weight")


def roles_of(names: Iterable[str], outer: re.Pattern[str] = _OUTER) -> dict[str, str]:
    """Tensor name → role; a name that is no part of the drafter is left out.

    `outer` are the names outside of the layers, EAGLE-3's unless another kind's are given. Where
    two names claim one role, the one with fewer wrappers has it. Decoder layers count from 0
    without a gap; one beyond a gap belongs to something else, such as a part of the target.
    """
    claims: dict[str, tuple[int, bool, str]] = {}
    for name in sorted(names):
        bare, wrappers = _unwrap(name)
        role = _role(bare, outer)
        claim = (wrappers, "midlayer." not in bare, name)
        if role is not None and (role not in claims or claim < claims[role]):
            claims[role] = claim
    count = layer_count(claims)
    return {
        claim[-1]: role
        for role, claim in claims.items()
        if not role.startswith("layers.") or _layer_index(role) < count
    }


def layer_count(roles: Iterable[str]) -> int:
    """How many decoder layers `roles` fill, counted from layer 0 without a gap."""
    present = {_layer_index(role) for role in roles if role.startswith("layers.")}
    count = 0
    while count in present:
        count += 1
    return count


def _layer_index(role: str) -> int:
    return int(role.split(".")[1])


def named(role: str, layer_prefix: str) -> str:
    """The tensor name of `role` where layer 0 is called `layer_prefix` (``midlayer.``)."""
    inner = role.removeprefix("layers.0.")
    return role if inner == role else layer_prefix + inner


def _unwrap(name: str) -> tuple[str, int]:
    parts = [part for part in name.split(".") if part != "_orig_mod"]
    wrappers = name.count("_orig_mod.")
    while len(parts) > 1 and parts[0] in _WRAPPERS:
        parts, wrappers = parts[1:], wrappers + 1
    return ".".join(parts), wrappers


def _role(bare: str, outer: re.Pattern[str]) -> str | None:
    bare = _LEGACY.get(bare, bare)
    if outer.fullmatch(bare):
        return bare
    layer = _LAYER.fullmatch(bare)
    if layer is None or not _INNER.fullmatch(layer["rest"]):
        return None
    index = layer["prefix"].partition(".")[2] or "0"
    return f"layers.{int(index)}.{layer['rest']}"
