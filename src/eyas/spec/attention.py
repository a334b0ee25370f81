"""The kinds of attention in a drafter's decoder layers."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.spec.fact import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Mha:
    """Multi-head (grouped-query) attention."""

    num_heads: Fact[int]
    num_kv_heads: Fact[int]
    head_dim: Fact[int]
    bias: Fact[bool]  # on q, k and v
    qk_norm: Fact[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mla:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434)."""

    num_heads: Fact[int]
    q_lora_rank: Fact[int]
    kv_lora_rank: Fact[int]
    qk_nope_head_dim: Fact[int]
    qk_rope_head_dim: Fact[int]
    v_head_dim: Fact[int]
