"""Reading the attention of a drafter: grouped-query (Mha) or latent (Mla)."""

from __future__ import annotations

from eyas.dialects.keys import Keys
from eyas.dialects.tensors import Tensors
from eyas.errors import CheckpointError
from eyas.spec import Fact, Mha, Mla, assumed, inferred

_LAYER = "layers.0.self_attn."
_LLAMA_CONFIG = "transformers' LlamaConfig"
_QWEN3_CONFIG = "transformers' Qwen3Config"


def read_attention(tensors: Tensors, keys: Keys, hidden_size: int) -> Mha | Mla:
    """The attention that `keys` and the tensors describe; CheckpointError if sizes are missing."""
    latent = any(tensors.has(f"{_LAYER}kv_{part}") for part in _LATENT)
    if latent or ("kv_lora_rank" in keys.values and not tensors.has(f"{_LAYER}q_proj.weight")):
        return _latent(tensors, keys)
    heads, head_dim = _heads(tensors, keys, hidden_size)
    qwen3 = keys.values.get("model_type") == "qwen3"
    return Mha(
        num_heads=heads,
        num_kv_heads=keys.size("num_key_value_heads")
        or tensors.quotient(f"{_LAYER}k_proj.weight", head_dim.value)
        or assumed(heads.value, keys.place("num_key_value_heads"), whose=_LLAMA_CONFIG),
        head_dim=head_dim,
        bias=tensors.present(f"{_LAYER}q_proj.bias")
        or tensors.present(f"{_LAYER}qkv_proj.bias")
        or keys.flag("attention_bias")
        or assumed(False, keys.place("attention_bias"), whose=_LLAMA_CONFIG),
        qk_norm=tensors.present(f"{_LAYER}q_norm.weight")
        or inferred(qwen3, keys.place("model_type")),
    )


_LATENT = ("a_proj_with_mqa.weight", "b_proj.weight", "a_layernorm.weight")


def _heads(tensors: Tensors, keys: Keys, hidden_size: int) -> tuple[Fact[int], Fact[int]]:
    heads, head_dim = keys.size("num_attention_heads"), keys.size("head_dim")
    if heads is None and head_dim is not None:
        heads = tensors.quotient(f"{_LAYER}q_proj.weight", head_dim.value)
    if heads is None:
        raise CheckpointError(
            f"{keys.place('num_attention_heads')} is missing, and no tensor tells it",
            hint="add the key",
        )
    head_dim = head_dim or tensors.quotient(f"{_LAYER}q_proj.weight", heads.value)
    if head_dim is None and keys.values.get("model_type") == "qwen3":
        head_dim = assumed(128, keys.place("head_dim"), whose=_QWEN3_CONFIG)
    if head_dim is None and hidden_size >= heads.value:
        head_dim = assumed(hidden_size // heads.value, keys.place("head_dim"), whose=_LLAMA_CONFIG)
    if head_dim is None:
        raise CheckpointError(
            f"{keys.place('num_attention_heads')} is {heads.value}, more than the hidden size"
            f" {hidden_size}",
            hint="correct the config",
        )
    return heads, head_dim


def _latent(tensors: Tensors, keys: Keys) -> Mla:
    def size(key: str, shown: Fact[int] | None = None) -> Fact[int]:
        fact = keys.size(key) or shown
        if fact is None:
            raise CheckpointError(
                f"{keys.place(key)} is missing, and no tensor tells it", hint="add the key"
            )
        return fact

    return Mla(
        num_heads=size("num_attention_heads"),
        q_lora_rank=size("q_lora_rank", tensors.rows(f"{_LAYER}q_a_proj.weight")),
        kv_lora_rank=size("kv_lora_rank", tensors.rows(f"{_LAYER}kv_a_layernorm.weight")),
        qk_nope_head_dim=size("qk_nope_head_dim"),
        qk_rope_head_dim=size("qk_rope_head_dim"),
        v_head_dim=size("v_head_dim"),
    )
