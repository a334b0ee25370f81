"""What a flat draft config is filled up with, by its model_type."""

from __future__ import annotations

from collections.abc import Mapping

from eyas.engines.config import LLAMA_DEFAULTS

# What transformers' config classes fill in for an absent key (5.24.0).
_QWEN3_DEFAULTS: Mapping[str, object] = {
    "hidden_size": 4096,
    "intermediate_size": 22016,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "head_dim": 128,
    "vocab_size": 151936,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "max_position_embeddings": 32768,
}
_LATENT_DEFAULTS: Mapping[str, object] = {
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
}
_DEEPSEEK_V2_DEFAULTS: Mapping[str, object] = {
    **_LATENT_DEFAULTS,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 102400,
    "max_position_embeddings": 2048,
}
_DEEPSEEK_V3_DEFAULTS: Mapping[str, object] = {
    **_LATENT_DEFAULTS,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "vocab_size": 129280,
    "max_position_embeddings": 4096,
}
DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "llama": LLAMA_DEFAULTS,
    "qwen3": _QWEN3_DEFAULTS,
    "deepseek_v2": _DEEPSEEK_V2_DEFAULTS,
    "kimi_k2": _DEEPSEEK_V3_DEFAULTS,  # vllm/transformers_utils/config.py 100
}
