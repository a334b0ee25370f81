"""Keys and values of a drafter's one layer, preallocated."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from eyas.errors import UsageError
from eyas.model.draft_shape import DraftShape


class DraftCache:
    """Keys and values [B, kv, S, D]; rolling back only moves the length."""

    def __init__(
        self,
        shape: DraftShape,
        batch: int,
        capacity: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        size = (batch, shape.kv_heads, capacity, shape.head_dim)
        self.keys = torch.zeros(size, dtype=dtype, device=device)
        self.values = torch.zeros(size, dtype=dtype, device=device)
        self.capacity = capacity
        self.length = 0

    def rollback(self, length: int) -> None:
        """Forget everything after the first `length` slots."""
        if not 0 <= length <= self.length:
            raise UsageError(f"cannot roll a cache of {self.length} slots back to {length}")
        self.length = length

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Append keys and values of T slots; the values mixed causally, [B, heads, T, D]."""
        batch, heads, new, width = q.shape
        begin, end = self.length, self.length + new
        if end > self.capacity:
            raise UsageError(f"the draft cache holds {self.capacity} slots; {end} were asked for")
        self.keys[:, :, begin:end] = k
        self.values[:, :, begin:end] = v
        self.length = end
        kv_heads = k.shape[1]
        mask = None
        if new > 1:
            slots = torch.arange(end, device=q.device)
            seen = slots[None, :] <= slots[begin:end, None]
            mask = seen.repeat(heads // kv_heads, 1)
        # query heads of a group become query rows, so keys are not repeated
        rows = q.reshape(batch, kv_heads, (heads // kv_heads) * new, width)
        mixed = F.scaled_dot_product_attention(
            rows, self.keys[:, :, :end], self.values[:, :, :end], attn_mask=mask
        )
        return mixed.reshape(batch, heads, new, width)
