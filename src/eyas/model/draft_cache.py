"""Keys and values of a drafter's layers, preallocated."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from eyas.errors import UsageError
from eyas.model.draft_attention import DraftAttention


class DraftCache:
    """Keys [B, kv, S, D] and values [B, kv, S, E] by layer; rolling back only moves the length."""

    def __init__(
        self,
        layers: Sequence[DraftAttention],
        batch: int,
        capacity: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        def empty(heads: int, width: int) -> Tensor:
            return torch.zeros((batch, heads, capacity, width), dtype=dtype, device=device)

        self._scales = [layer.scale for layer in layers]
        self._keys = [empty(layer.kv_heads, layer.key_width) for layer in layers]
        self._values = [empty(layer.kv_heads, layer.value_width) for layer in layers]
        self.capacity = capacity
        self.length = 0

    def rollback(self, length: int) -> None:
        """Forget everything after the first `length` slots."""
        if not 0 <= length <= self.length:
            raise UsageError(f"cannot roll a cache of {self.length} slots back to {length}")
        self.length = length

    def require(self, new: int) -> None:
        """Raise UsageError unless `new` more slots fit."""
        if self.length + new > self.capacity:
            raise UsageError(
                f"the draft cache holds {self.capacity} slots; {self.length + new} were asked for"
            )

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Write the next T slots of `layer`; its values mixed causally, [B, heads, T, E].

        The slots count as filled only after `advance`, which follows when all layers have run.
        """
        batch, heads, new, width = q.shape
        begin, end = self.length, self.length + new
        self._keys[layer][:, :, begin:end] = k
        self._values[layer][:, :, begin:end] = v
        kv_heads = k.shape[1]
        mask = None
        if new > 1:
            slots = torch.arange(end, device=q.device)
            seen = slots[None, :] <= slots[begin:end, None]
            mask = seen.repeat(heads // kv_heads, 1)
        # query heads of a group become query rows, so keys are not repeated
        rows = q.reshape(batch, kv_heads, (heads // kv_heads) * new, width)
        mixed = F.scaled_dot_product_attention(
            rows,
            self._keys[layer][:, :, :end],
            self._values[layer][:, :, :end],
            attn_mask=mask,
            scale=self._scales[layer],
        )
        return mixed.reshape(batch, heads, new, v.shape[-1])

    def advance(self, new: int) -> None:
        """Count `new` slots, written in every layer, as filled."""
        self.length += new
