"""The drafter's decoder layer: attention over [embedding, hidden], then a gated MLP."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eyas.model.draft_shape import DraftShape
from eyas.model.rope import rotate


class RmsNorm(nn.Module):
    """Root-mean-square norm with a gain (arXiv 1910.07467), computed in the gain's dtype."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension."""
        return F.rms_norm(x.to(self.weight.dtype), (x.shape[-1],), self.weight, self.eps)


class DraftAttention(nn.Module):
    """Projections of grouped-query attention whose input is twice the drafter's width."""

    def __init__(self, shape: DraftShape) -> None:
        super().__init__()
        self.shape = shape
        wide = 2 * shape.hidden
        self.q_proj = nn.Linear(wide, shape.heads * shape.head_dim, bias=shape.qkv_bias)
        self.k_proj = nn.Linear(wide, shape.kv_heads * shape.head_dim, bias=shape.qkv_bias)
        self.v_proj = nn.Linear(wide, shape.kv_heads * shape.head_dim, bias=shape.qkv_bias)
        self.o_proj = nn.Linear(shape.heads * shape.head_dim, shape.hidden, bias=False)

    def project(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries [B, heads, T, D] and keys, and values, [B, kv, T, D]."""

        def split(projected: Tensor) -> Tensor:
            batch, new, _ = projected.shape
            return projected.view(batch, new, -1, self.shape.head_dim).transpose(1, 2)

        q, k, v = split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x))
        cos, sin = cos[:, None].to(q.dtype), sin[:, None].to(q.dtype)
        return rotate(q, cos, sin), rotate(k, cos, sin), v


class GatedMlp(nn.Module):
    """SwiGLU (arXiv 2002.05202)."""

    def __init__(self, hidden: int, intermediate: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden, intermediate, bias=False)
        self.up_proj = nn.Linear(hidden, intermediate, bias=False)
        self.down_proj = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[..., H] to [..., H]."""
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class DraftLayer(nn.Module):
    """The layer without its attention pattern: callers mix the values between `entry` and `leave`.

    Drafting mixes over a cache, training over the unrolled steps.
    """

    def __init__(self, shape: DraftShape) -> None:
        super().__init__()
        self.norm_before_residual = shape.norm_before_residual
        self.input_layernorm = RmsNorm(shape.hidden, shape.rms_eps)
        self.hidden_norm = RmsNorm(shape.hidden, shape.rms_eps)
        self.self_attn = DraftAttention(shape)
        self.post_attention_layernorm = RmsNorm(shape.hidden, shape.rms_eps)
        self.mlp = GatedMlp(shape.hidden, shape.intermediate)

    def entry(self, embedded_BTH: Tensor, hidden_BTH: Tensor) -> tuple[Tensor, Tensor]:
        """The attention's input, [B, T, 2H] with the embedding first, and the residual."""
        normed = self.hidden_norm(hidden_BTH)
        x = torch.cat([self.input_layernorm(embedded_BTH), normed], dim=-1)
        return x, normed if self.norm_before_residual else hidden_BTH

    def leave(self, residual_BTH: Tensor, mixed: Tensor) -> Tensor:
        """The layer's output from the residual and the mixed values [B, heads, T, D]."""
        attended = residual_BTH + self.self_attn.o_proj(mixed.transpose(1, 2).flatten(2))
        out: Tensor = attended + self.mlp(self.post_attention_layernorm(attended))
        return out
