"""The drafter's two kinds of attention, up to the queries, keys and values that are mixed.

Shape letters: see `eyas.model.target`; D is the width of a query or key, E of a value.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from eyas.model.draft_shape import DraftShape, GroupedShape, LatentShape
from eyas.model.rms_norm import RmsNorm
from eyas.model.rope import rotate, rotate_pairs
from eyas.model.rope_scaling import latent_score_factor


class GroupedAttention(nn.Module):
    """Grouped-query attention (arXiv 2305.13245), with Qwen3's norms on queries and keys or not."""

    def __init__(self, attention: GroupedShape, shape: DraftShape, width: int) -> None:
        """`width` is that of the input: twice the drafter's in its first layer."""
        super().__init__()
        heads, kv_heads, head_dim = attention.heads, attention.kv_heads, attention.head_dim
        self.q_proj = nn.Linear(width, heads * head_dim, bias=attention.qkv_bias)
        self.k_proj = nn.Linear(width, kv_heads * head_dim, bias=attention.qkv_bias)
        self.v_proj = nn.Linear(width, kv_heads * head_dim, bias=attention.qkv_bias)
        self.o_proj = nn.Linear(heads * head_dim, shape.hidden, bias=False)
        if attention.qk_norm:
            self.q_norm = RmsNorm(head_dim, shape.rms_eps)
            self.k_norm = RmsNorm(head_dim, shape.rms_eps)
        self._qk_norm = attention.qk_norm
        self.rotated = self.key_width = self.value_width = head_dim
        self.kv_heads = kv_heads
        self.scale: float = head_dim**-0.5

    def project(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries [B, heads, T, D] and keys [B, kv, T, D], and values [B, kv, T, E]."""
        q, k, v = (self._split(linear(x)) for linear in (self.q_proj, self.k_proj, self.v_proj))
        if self._qk_norm:
            q, k = self.q_norm(q).to(v.dtype), self.k_norm(k).to(v.dtype)
        cos, sin = cos[:, None].to(q.dtype), sin[:, None].to(q.dtype)
        return rotate(q, cos, sin), rotate(k, cos, sin), v

    def _split(self, projected: Tensor) -> Tensor:
        batch, new, _ = projected.shape
        return projected.view(batch, new, -1, self.key_width).transpose(1, 2)


class LatentAttention(nn.Module):
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).

    Queries, and keys and values, pass through a narrow normed latent each. A head's query and key
    are a plain part and a rotated one; the rotated part of the key is shared by all heads. Keys
    and values are expanded before they are cached, which is the same arithmetic at any width.
    """

    def __init__(self, attention: LatentShape, shape: DraftShape, width: int) -> None:
        """`width` is that of the input: twice the drafter's in its first layer."""
        super().__init__()
        self._sizes = attention
        heads, value = attention.heads, attention.value
        query, rank = attention.nope + attention.rope, attention.key_value_rank
        self.q_a_proj = nn.Linear(width, attention.query_rank, bias=False)
        self.q_a_layernorm = RmsNorm(attention.query_rank, shape.rms_eps)
        self.q_b_proj = nn.Linear(attention.query_rank, heads * query, bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(width, rank + attention.rope, bias=False)
        self.kv_a_layernorm = RmsNorm(rank, shape.rms_eps)
        self.kv_b_proj = nn.Linear(rank, heads * (attention.nope + value), bias=False)
        self.o_proj = nn.Linear(heads * value, shape.hidden, bias=False)
        self.rotated, self.key_width, self.value_width = attention.rope, query, value
        self.kv_heads = heads
        self.scale: float = query**-0.5 * latent_score_factor(shape.rope)

    def project(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries and keys [B, heads, T, D], rotated in part, and values [B, heads, T, E]."""
        sizes = self._sizes
        q = self._split(self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x))))
        q_nope, q_rope = torch.split(q, [sizes.nope, sizes.rope], dim=-1)
        narrow = self.kv_a_proj_with_mqa(x)
        latent, k_rope = torch.split(narrow, [sizes.key_value_rank, sizes.rope], dim=-1)
        expanded = self._split(self.kv_b_proj(self.kv_a_layernorm(latent)))
        k_nope, v = torch.split(expanded, [sizes.nope, sizes.value], dim=-1)
        cos, sin = cos[:, None].to(q.dtype), sin[:, None].to(q.dtype)
        shared = rotate_pairs(k_rope[:, None], cos, sin).expand(-1, sizes.heads, -1, -1)
        queries = torch.cat([q_nope, rotate_pairs(q_rope, cos, sin)], dim=-1)
        return queries, torch.cat([k_nope, shared], dim=-1), v

    def _split(self, projected: Tensor) -> Tensor:
        batch, new, _ = projected.shape
        return projected.view(batch, new, self._sizes.heads, -1).transpose(1, 2)


DraftAttention = GroupedAttention | LatentAttention


def attention_of(shape: DraftShape, width: int) -> DraftAttention:
    """The attention of one layer over inputs of `width`."""
    if isinstance(shape.attention, LatentShape):
        return LatentAttention(shape.attention, shape, width)
    return GroupedAttention(shape.attention, shape, width)
