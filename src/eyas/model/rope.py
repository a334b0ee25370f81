"""Rotary positions (RoFormer, arXiv 2104.09864) as tables of cosines and sines."""

from __future__ import annotations

import torch
from torch import Tensor

from eyas.model.rope_scaling import scaled_frequencies
from eyas.spec import Rope


class RopeTable:
    """Cosines and sines of rotary positions.

    Angles are made in float32, as transformers and the engines do, unless float64 is asked for.
    """

    def __init__(
        self,
        rope: Rope,
        *,
        head_dim: int,
        device: torch.device,
        max_positions: int | None = None,
    ) -> None:
        """`head_dim` channels are rotated; for `max_positions` see `scaled_frequencies`."""
        scaled = scaled_frequencies(rope, head_dim, max_positions)
        self._theta = rope.theta
        self._powers = torch.arange(0, head_dim, 2, device=device, dtype=torch.float64) / head_dim
        # plain angles are left to `_frequencies`: rounded there as everybody rounds them
        self._scaled = None if rope.kind == "default" else scaled.angles.to(device)
        self._amplitude = scaled.amplitude

    def at(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """(cos, sin) of integer `positions` [...], each [..., head_dim], the halves alike."""
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        angles = positions[..., None].to(wide) * self._frequencies(positions.device, wide)
        both = torch.cat([angles, angles], dim=-1)
        cos, sin = both.cos(), both.sin()
        if self._amplitude != 1.0:
            cos, sin = cos * self._amplitude, sin * self._amplitude
        return cos.to(dtype), sin.to(dtype)

    def _frequencies(self, device: torch.device, dtype: torch.dtype) -> Tensor:
        if self._scaled is not None:
            return self._scaled.to(device, dtype)
        return 1.0 / (self._theta ** self._powers.to(device, dtype))


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate channel j with channel j + D/2, the layout of every Hugging Face Llama.

    The tables are broadcast against `x`.
    """
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-high, low], dim=-1) * sin


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate channel 2j with channel 2j + 1, the layout of DeepSeek's latent attention.

    The tables are those of `rotate`.
    """
    half = x.shape[-1] // 2
    cos, sin = cos[..., :half], sin[..., :half]
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1).flatten(-2)
