"""Rotary positions in the half-split layout that every Hugging Face Llama uses."""

from __future__ import annotations

import torch
from torch import Tensor


class RopeTable:
    """Cosines and sines of plain rotary positions (RoFormer, arXiv 2104.09864).

    Angles are made in float32, as transformers and the engines do, unless float64 is asked for.
    """

    def __init__(self, *, theta: float, head_dim: int, device: torch.device) -> None:
        self._theta = theta
        self._powers = torch.arange(0, head_dim, 2, device=device, dtype=torch.float64) / head_dim

    def at(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """(cos, sin) of integer `positions` [...], each [..., head_dim]."""
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        frequencies = 1.0 / (self._theta ** self._powers.to(positions.device, wide))
        angles = positions[..., None].to(wide) * frequencies
        both = torch.cat([angles, angles], dim=-1)
        return both.cos().to(dtype), both.sin().to(dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the last dimension of `x` by tables broadcast against it."""
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-high, low], dim=-1) * sin
