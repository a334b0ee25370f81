"""A small flat EAGLE-3 drafter: its config, its tensors under any layer name, and its map."""

from __future__ import annotations

from typing import Any

FLAT: dict[str, Any] = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "vocab_size": 20,
    "draft_vocab_size": 4,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000,
}
INNER: dict[str, tuple[int, ...]] = {
    "self_attn.q_proj.weight": (8, 16),
    "self_attn.k_proj.weight": (4, 16),
    "self_attn.v_proj.weight": (4, 16),
    "self_attn.o_proj.weight": (8, 8),
    "mlp.gate_proj.weight": (12, 8),
    "mlp.up_proj.weight": (12, 8),
    "mlp.down_proj.weight": (8, 12),
    "input_layernorm.weight": (8,),
    "hidden_norm.weight": (8,),
    "post_attention_layernorm.weight": (8,),
}
OUTER = {"fc.weight": (8, 24), "norm.weight": (8,), "lm_head.weight": (4, 8)}
D2T = [0, 4, 8, 12]  # the kept ids are 0, 5, 10, 15


Shapes = dict[str, tuple[int, ...]]


def shapes(prefix: str = "midlayer.", wrapper: str = "", inner: Shapes = INNER) -> Shapes:
    """The tensors, with the layer called `prefix` and `wrapper` in front of all names."""
    layer = {wrapper + prefix + name: shape for name, shape in inner.items()}
    return layer | {wrapper + name: shape for name, shape in OUTER.items()}


def without(*keys: str) -> dict[str, Any]:
    """The config without `keys`."""
    return {key: value for key, value in FLAT.items() if key not in keys}
