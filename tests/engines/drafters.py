"""Small drafters as headers alone, for the engines to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eyas.checkpoint import Checkpoint, TargetFacts, TensorHeader

H, INNER, HEADS, KV, D, V, VD = 16, 24, 4, 2, 4, 80, 40
Q_RANK, KV_RANK, NOPE, ROPE, VALUE = 6, 5, 3, 2, 4  # of latent attention
Shapes = Mapping[str, tuple[int, ...]]


def flat_config(**changes: Any) -> dict[str, Any]:
    """A flat config; a change to None removes the key."""
    config = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": H,
        "intermediate_size": INNER,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV,
        "head_dim": D,
        "vocab_size": V,
        "draft_vocab_size": VD,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "rope_theta": 5000.0,
        **changes,
    }
    return {key: value for key, value in config.items() if value is not None}


def speculators_config(**changes: Any) -> dict[str, Any]:
    """The same drafter in speculators' nested form; a change to None removes the key."""
    layer = flat_config(architectures=None, draft_vocab_size=None)
    config = {
        "architectures": ["Eagle3DraftModel"],
        "speculators_model_type": "eagle3",
        "speculators_config": {"algorithm": "eagle3"},
        "transformer_layer_config": layer,
        "draft_vocab_size": VD,
        "norm_before_residual": True,
        "eagle_aux_hidden_state_layer_ids": [3, 6, 8],
        **changes,
    }
    return {key: value for key, value in config.items() if value is not None}


def shapes(layer: str = "midlayer", prefix: str = "") -> dict[str, tuple[int, ...]]:
    """The tensors of a one-layer drafter, its layer and all its names prefixed as asked."""
    block = f"{prefix}{layer}."
    return {
        f"{prefix}fc.weight": (H, 3 * H),
        f"{block}self_attn.q_proj.weight": (HEADS * D, 2 * H),
        f"{block}self_attn.k_proj.weight": (KV * D, 2 * H),
        f"{block}self_attn.v_proj.weight": (KV * D, 2 * H),
        f"{block}self_attn.o_proj.weight": (H, HEADS * D),
        f"{block}mlp.gate_proj.weight": (INNER, H),
        f"{block}mlp.up_proj.weight": (INNER, H),
        f"{block}mlp.down_proj.weight": (H, INNER),
        f"{block}hidden_norm.weight": (H,),
        f"{block}input_layernorm.weight": (H,),
        f"{block}post_attention_layernorm.weight": (H,),
        f"{prefix}norm.weight": (H,),
        "lm_head.weight": (VD, H),
        "d2t": (VD,),
        "t2d": (V,),
    }


def qwen3_shapes() -> Shapes:
    """The tensors of a drafter that norms queries and keys."""
    norms = {f"layers.0.self_attn.{key}_norm.weight": (D,) for key in "qk"}
    return shapes("layers.0") | norms


def latent_config(**changes: Any) -> dict[str, Any]:
    """A flat config of a drafter with latent attention."""
    return flat_config(
        **{
            "architectures": ["Eagle3DeepseekV2ForCausalLM"],
            "model_type": "kimi_k2",
            "q_lora_rank": Q_RANK,
            "kv_lora_rank": KV_RANK,
            "qk_nope_head_dim": NOPE,
            "qk_rope_head_dim": ROPE,
            "v_head_dim": VALUE,
            **changes,
        }
    )


def latent_shapes(layer: str = "midlayer", prefix: str = "") -> Shapes:
    """Its tensors, with the layer under the name `layer`."""
    attention = f"{prefix}{layer}.self_attn."
    kept = {name: shape for name, shape in shapes(layer, prefix).items() if "attn" not in name}
    return kept | {
        f"{attention}q_a_proj.weight": (Q_RANK, 2 * H),
        f"{attention}kv_a_proj_with_mqa.weight": (KV_RANK + ROPE, 2 * H),
        f"{attention}q_a_layernorm.weight": (Q_RANK,),
        f"{attention}kv_a_layernorm.weight": (KV_RANK,),
        f"{attention}q_b_proj.weight": (HEADS * (NOPE + ROPE), Q_RANK),
        f"{attention}kv_b_proj.weight": (HEADS * (NOPE + VALUE), KV_RANK),
        f"{attention}o_proj.weight": (H, HEADS * VALUE),
    }


def drafter(config: Mapping[str, Any], tensors: Shapes) -> Checkpoint:
    """A checkpoint of headers without bytes."""
    return Checkpoint(
        location="drafter",
        directory=Path("nowhere"),
        config=config,
        config_file="config.json",
        tensors={
            name: TensorHeader(
                name=name, dtype="BF16", shape=shape, file="model.safetensors", nbytes=0
            )
            for name, shape in tensors.items()
        },
        files=("model.safetensors",),
        revision=None,
    )


def target(
    *,
    layers: int = 12,
    hidden: int = H,
    vocab: int = V,
    architecture: str = "LlamaForCausalLM",
) -> TargetFacts:
    """A target of the given depth, width and vocabulary."""
    return TargetFacts(
        location="target",
        directory=Path("nowhere"),
        architectures=(architecture,),
        model_type="llama",
        text_model_type="llama",
        hidden_size=hidden,
        intermediate_size=INNER,
        num_layers=layers,
        num_attention_heads=HEADS,
        num_key_value_heads=KV,
        head_dim=D,
        vocab_size=vocab,
        max_position_embeddings=128,
        rope_theta=10000.0,
        dtype="bfloat16",
        tie_word_embeddings=False,
    )
