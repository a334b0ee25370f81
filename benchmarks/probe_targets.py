"""Other targets for damaged drafters: SGLang asks a target's own class which states it captures."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from benchmarks.probe_mutations import Mutant

_COMMON: Mapping[str, Any] = {
    "num_hidden_layers": 12,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "intermediate_size": 12,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
_EXPERTS: Mapping[str, Any] = {"num_experts_per_tok": 2, "moe_intermediate_size": 12}
_TARGETS: Mapping[str, Mapping[str, Any]] = {
    "LlamaForCausalLM": {"model_type": "llama"},
    "MistralForCausalLM": {"model_type": "mistral"},
    "Phi3ForCausalLM": {"model_type": "phi3", "pad_token_id": 0, "eos_token_id": 1},
    "Qwen2ForCausalLM": {"model_type": "qwen2"},
    "Qwen3ForCausalLM": {"model_type": "qwen3"},
    "Qwen3MoeForCausalLM": {
        "model_type": "qwen3_moe",
        "num_experts": 4,
        "decoder_sparse_step": 1,
        "norm_topk_prob": True,
        "mlp_only_layers": [],
        **_EXPERTS,
    },
    "GptOssForCausalLM": {
        "model_type": "gpt_oss",
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": 128,
        "swiglu_limit": 7.0,
        "layer_types": ["sliding_attention", "full_attention"] * 6,
    },
    "DeepseekV3ForCausalLM": {
        "model_type": "deepseek_v3",
        "num_key_value_heads": 2,
        "q_lora_rank": 4,
        "kv_lora_rank": 4,
        "qk_nope_head_dim": 4,
        "qk_rope_head_dim": 4,
        "v_head_dim": 4,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "first_k_dense_replace": 1,
        "n_group": 1,
        "topk_group": 1,
        "routed_scaling_factor": 1.0,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "norm_topk_prob": True,
        "moe_layer_freq": 1,
        **_EXPERTS,
    },
    "Gemma3ForCausalLM": {
        "model_type": "gemma3_text",
        "query_pre_attn_scalar": 4,
        "sliding_window": 128,
        "sliding_window_pattern": 6,
        "hidden_activation": "gelu_pytorch_tanh",
        "rope_local_base_freq": 10000.0,
    },
}
_IDS = ([1, 5, 11], [-1, 5, 8], [1, 5, 8], [2, 5, 9], [1, 5, 13], [5, 1], [0, 5, 12], [1, 1, 5])


def retargeted(made: Mutant, seed: int) -> Mutant:
    """`made`, one time in five beside another target, most often with ids of its own for it."""
    random = Random(f"target {seed}-{made.number}")
    if random.random() > 0.2:
        return made
    name = random.choice(sorted(_TARGETS))
    sizes = {key: made.target[key] for key in ("hidden_size", "vocab_size")}
    target = {"architectures": [name], **_COMMON, **_TARGETS[name], **sizes}
    made = replace(made, target=target, what=f"{made.what}; target {name}")
    if random.random() > 0.7:
        return made
    ids = random.choice(_IDS)
    config = copy.deepcopy(dict(made.config))
    config["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": list(ids)}
    return replace(made, config=config, what=f"{made.what}; nested ids {ids}")
