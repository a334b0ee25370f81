"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434) as engines build it in a drafter."""

from __future__ import annotations

from eyas.engines.config import ConfigView
from eyas.engines.decoder import Block
from eyas.engines.parameter import Fit, Parameter
from eyas.spec import Mla


def latent_sizes_of(config: ConfigView) -> Mla:
    """The dimensions that `config` gives; its `stop` is raised for one that cannot be had."""
    return Mla(
        num_heads=config.whole("num_attention_heads"),
        q_lora_rank=config.whole("q_lora_rank"),
        kv_lora_rank=config.whole("kv_lora_rank"),
        qk_nope_head_dim=config.whole("qk_nope_head_dim"),
        qk_rope_head_dim=config.whole("qk_rope_head_dim"),
        v_head_dim=config.whole("v_head_dim"),
    )


def latent_attention(
    block: Block, fused: str, sizes: Mla, hidden: int, attention_input: int
) -> list[Parameter]:
    """The parameters of the attention; `fused` names the one of q_a_proj and kv_a_proj."""
    heads, query, key_value = (
        sizes.num_heads.value,
        sizes.q_lora_rank.value,
        sizes.kv_lora_rank.value,
    )
    nope, rope = sizes.qk_nope_head_dim.value, sizes.qk_rope_head_dim.value
    value = sizes.v_head_dim.value
    down = {"q_a": query, "kv_a": key_value + rope}
    return [
        block.fused(f"self_attn.{fused}", down, attention_input, pads=False),
        block.gain("self_attn.q_a_layernorm", query),
        block.linear("self_attn.q_b_proj", heads * (nope + rope), query, Fit.ROWS),
        block.gain("self_attn.kv_a_layernorm", key_value),
        block.linear("self_attn.kv_b_proj", heads * (nope + value), key_value, Fit.ROWS),
        block.linear("self_attn.o_proj", hidden, heads * value),
    ]
