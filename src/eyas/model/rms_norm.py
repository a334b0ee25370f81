"""The norm of every drafter."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RmsNorm(nn.Module):
    """Root-mean-square norm with a gain (arXiv 1910.07467), computed in the gain's dtype."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension."""
        return F.rms_norm(x.to(self.weight.dtype), (x.shape[-1],), self.weight, self.eps)
