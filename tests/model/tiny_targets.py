"""Tiny models of many kinds with random weights, and their states as hooks of the test see them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

LAYERS, VOCAB, WINDOW = 5, 96, 6
COMMON: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": VOCAB,
    "max_position_embeddings": 128,
    "initializer_range": 0.2,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 0,
}


def _llama(**rope: Any) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    parameters = {"rope_type": "default", "rope_theta": 500.0, **rope}
    return LlamaForCausalLM(LlamaConfig(**COMMON, rope_parameters=parameters))


_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
_YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16}


def _shaken(model: Any) -> Any:
    """`model` with its norms and biases, which start as ones and zeros, made random."""
    for parameter in model.parameters():
        if parameter.ndim == 1:
            torch.nn.init.normal_(parameter, mean=1.0, std=0.3)
    return model


def _qwen2() -> Any:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    common = {k: v for k, v in COMMON.items() if k != "head_dim"}
    return _shaken(Qwen2ForCausalLM(Qwen2Config(**common)))


def _qwen3() -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return _shaken(Qwen3ForCausalLM(Qwen3Config(**COMMON)))


def _sliding_qwen2() -> Any:
    """The later layers see a window."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    common = {k: v for k, v in COMMON.items() if k != "head_dim"}
    window = {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 2}
    return _shaken(Qwen2ForCausalLM(Qwen2Config(**common, **window)))


def _gpt_oss() -> Any:
    """Attention sinks, and a sliding window in every other layer."""
    from transformers import GptOssConfig, GptOssForCausalLM

    rope = {"rope_type": "default", "rope_theta": 500.0}
    config = GptOssConfig(
        **COMMON,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=WINDOW,
        rope_parameters=rope,
    )
    model = GptOssForCausalLM(config)
    for layer in model.model.layers:
        torch.nn.init.normal_(layer.self_attn.sinks)
    return model


def _deepseek_v3() -> Any:
    """Latent attention; the last three layers are mixtures of experts."""
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

    common = {k: v for k, v in COMMON.items() if k not in ("head_dim", "num_key_value_heads")}
    config = DeepseekV3Config(
        **common,
        num_key_value_heads=4,
        moe_intermediate_size=16,
        n_routed_experts=8,
        n_group=2,
        topk_group=1,
        num_experts_per_tok=2,
        n_shared_experts=1,
        first_k_dense_replace=2,
        q_lora_rank=12,
        kv_lora_rank=16,
        qk_nope_head_dim=8,
        qk_rope_head_dim=4,
        v_head_dim=8,
    )
    return DeepseekV3ForCausalLM(config)


_VISION: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 16,
    "patch_size": 8,
}


def _llava() -> Any:
    """A wrapper: `text_config`, and an inner `language_model`."""
    from transformers import (
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
    )

    text, vision = LlamaConfig(**COMMON), CLIPVisionConfig(**_VISION, projection_dim=16)
    config = LlavaConfig(text_config=text, vision_config=vision, image_token_index=VOCAB - 1)
    return LlavaForConditionalGeneration(config)


def _gemma3() -> Any:
    """A wrapper whose text model slides, scales its embeddings and norms by 1 + weight."""
    from transformers import (
        Gemma3Config,
        Gemma3ForConditionalGeneration,
        Gemma3TextConfig,
        SiglipVisionConfig,
    )

    text = Gemma3TextConfig(**COMMON, sliding_window=WINDOW)
    config = Gemma3Config(text_config=text, vision_config=SiglipVisionConfig(**_VISION))
    return Gemma3ForConditionalGeneration(config)


def qwen3_next() -> Any:
    """Linear attention, whose recurrent state cannot be rolled back."""
    from transformers import Qwen3NextConfig, Qwen3NextForCausalLM

    config = Qwen3NextConfig(
        **COMMON,
        linear_num_value_heads=4,
        linear_num_key_heads=2,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=16,
    )
    return Qwen3NextForCausalLM(config)


MAKERS: dict[str, Callable[[], Any]] = {
    "llama": _llama,
    "llama_llama3": partial(_llama, **_LLAMA3),
    "llama_yarn": partial(_llama, **_YARN),
    "llama_linear": partial(_llama, rope_type="linear", factor=4.0),
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "sliding_qwen2": _sliding_qwen2,
    "gpt_oss": _gpt_oss,
    "deepseek_v3": _deepseek_v3,
    "llava": _llava,
    "gemma3": _gemma3,
}


def save(make: Callable[[], Any], directory: Path) -> Path:
    """A model of random weights, written as transformers writes it."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(0)
    make().save_pretrained(directory)
    return directory


class Hooked:
    """The model read anew by the class that its config names, watched by forward hooks."""

    def __init__(self, directory: Path, dtype: torch.dtype) -> None:
        import transformers

        config = transformers.AutoConfig.from_pretrained(directory)
        kind = getattr(transformers, config.architectures[0])
        self.model = kind.from_pretrained(directory, dtype=dtype).eval()
        text = getattr(self.model.model, "language_model", self.model.model)
        self.layers, self.embedding = text.layers, text.embed_tokens

    def read(self, ids_BT: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Logits, and what the embedding and each layer give out: boundaries 0 to L."""
        seen: list[Tensor] = []

        def hook(_: Any, __: Any, out: Any) -> None:
            seen.append(out[0] if isinstance(out, tuple) else out)

        hooks = [m.register_forward_hook(hook) for m in (self.embedding, *self.layers)]
        try:
            with torch.no_grad():
                logits = self.model(input_ids=ids_BT, use_cache=False).logits
        finally:
            for handle in hooks:
                handle.remove()
        return logits, seen
