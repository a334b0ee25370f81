"""The shapes that a drafter's config asks for, by role."""

from __future__ import annotations

from eyas.spec import Eagle3Spec, Fused, Mha, Mla

Shape = tuple[int, ...]
_MOST_STATES = 64  # of which a norm each is looked for; the widest fusion in use takes 5


def shapes_asked(spec: Eagle3Spec) -> dict[str, Shape]:
    """Role → shape of every matrix and norm that a drafter of `spec` may have, stored or not."""
    hidden = spec.hidden_size.value
    asked: dict[str, Shape] = {
        "norm.weight": (hidden,),
        "embed_tokens.weight": (spec.vocab_size.value, hidden),
        "lm_head.weight": (spec.draft_vocab_size.value, hidden),
    }
    if isinstance(spec.conditioning, Fused):
        count, width = spec.conditioning.count.value, spec.target_hidden_size.value
        asked |= {
            "fc.weight": (hidden, count * width),
            "fc.bias": (hidden,),
            "input_norm.weight": (count * width,),
            **{f"fc_norm.{i}.weight": (width,) for i in range(min(count, _MOST_STATES))},
        }
    for index in range(spec.num_layers.value):
        inner = _layer(spec, hidden if index else 2 * hidden)
        asked |= {f"layers.{index}.{name}": shape for name, shape in inner.items()}
    return asked


def _layer(spec: Eagle3Spec, seen: int) -> dict[str, Shape]:
    """The parts of a decoder layer whose attention sees states `seen` wide."""
    hidden, inner = spec.hidden_size.value, spec.intermediate_size.value
    norms = ("input_layernorm", "hidden_norm", "post_attention_layernorm")
    attention = spec.attention
    parts = (
        _grouped(attention, seen, hidden)
        if isinstance(attention, Mha)
        else _latent(attention, seen, hidden)
    )
    return {
        **{f"{norm}.weight": (hidden,) for norm in norms},
        **{f"self_attn.{name}": shape for name, shape in parts.items()},
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.gate_up_proj.weight": (2 * inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }


def _grouped(attention: Mha, seen: int, hidden: int) -> dict[str, Shape]:
    dim = attention.head_dim.value
    queries, keys = attention.num_heads.value * dim, attention.num_kv_heads.value * dim
    rows = {"q_proj": queries, "k_proj": keys, "v_proj": keys, "qkv_proj": queries + 2 * keys}
    return {
        **{f"{name}.weight": (size, seen) for name, size in rows.items()},
        **{f"{name}.bias": (size,) for name, size in rows.items()},
        "o_proj.weight": (hidden, queries),
        "q_norm.weight": (dim,),
        "k_norm.weight": (dim,),
    }


def _latent(attention: Mla, seen: int, hidden: int) -> dict[str, Shape]:
    heads, rotary = attention.num_heads.value, attention.qk_rope_head_dim.value
    nope, value = attention.qk_nope_head_dim.value, attention.v_head_dim.value
    q_rank, kv_rank = attention.q_lora_rank.value, attention.kv_lora_rank.value
    return {
        "q_a_proj.weight": (q_rank, seen),
        "q_a_layernorm.weight": (q_rank,),
        "q_b_proj.weight": (heads * (nope + rotary), q_rank),
        "kv_a_proj_with_mqa.weight": (kv_rank + rotary, seen),
        "kv_a_layernorm.weight": (kv_rank,),
        "kv_b_proj.weight": (heads * (nope + value), kv_rank),
        "o_proj.weight": (hidden, heads * value),
    }
