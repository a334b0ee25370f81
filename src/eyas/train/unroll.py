"""Test-time training (EAGLE-3, arXiv 2503.01840, section 3.1): the drafter unrolled on itself.

Slot i holds the token x_{i+1} and the state of position i. At step k the same slot holds
x_{i+1+k} and the drafter's own last output; its query, at rotary position i+k, sees the step-0
keys of slots 0..i and its own keys of steps 1..k. That is what a chain of drafts sees.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from eyas.model.drafter import Drafter


def unroll(drafter: Drafter, ids_BT: Tensor, captured_BTC: Tensor, steps: int) -> Iterator[Tensor]:
    """The decoder output [B, T, H] of each step, before the final norm.

    `ids_BT` and `captured_BTC` are aligned: token and states of the same position. Slot i of
    step k is meaningful where position i+1+k exists; the rest is computed from id 0.
    """
    length = ids_BT.shape[1]
    padded = torch.nn.functional.pad(ids_BT, (0, steps))
    positions_T = torch.arange(length, device=ids_BT.device)
    hidden = drafter.fuse(captured_BTC)
    layers = [(layer, _UnrolledAttention(layer.self_attn.scale)) for layer in drafter.decoder]
    for step in range(steps):
        embedded = drafter.embed(padded[:, 1 + step : 1 + step + length])
        tables = drafter.rope_at(positions_T[None] + step)
        output = hidden
        for layer, attention in layers:
            x, residual = layer.entry(embedded, output)
            output = layer.leave(residual, attention.mix(*layer.self_attn.project(x, *tables)))
        yield output
        hidden = drafter.feedback(output)


class _UnrolledAttention:
    """Step-0 keys in full, later steps' keys slot by slot."""

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._first: tuple[Tensor, Tensor] | None = None
        self._own: list[tuple[Tensor, Tensor]] = []

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """This step's values v [B, kv, T, E] mixed for q [B, heads, T, D] and k [B, kv, T, D]."""
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        if self._first is None:
            self._first = (k, v)
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=True, scale=self._scale
            )
        self._own.append((k, v))
        first_k, first_v = self._first
        length = q.shape[2]
        scale = self._scale
        later = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
        scores = (q @ first_k.transpose(-1, -2)) * scale
        scores = scores.masked_fill(later, float("-inf"))
        own = [(q * key).sum(-1, keepdim=True) * scale for key, _ in self._own]
        weights = torch.cat([scores, *own], dim=-1).softmax(dim=-1).to(v.dtype)
        mixed = weights[..., :length] @ first_v
        for step, (_, value) in enumerate(self._own):
            mixed = mixed + weights[..., length + step, None] * value
        return mixed
