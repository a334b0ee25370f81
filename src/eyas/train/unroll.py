"""Test-time training (EAGLE-3, arXiv 2503.01840, section 3.1): the drafter unrolled on itself.

Slot i holds the token x_{i+1} and the state of position i. At step k the same slot holds
x_{i+1+k} and the drafter's own last output; its query, at rotary position i+k, sees the step-0
keys of slots 0..i and its own keys of steps 1..k. That is what a chain of drafts sees.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from eyas.model.draft_layer import DraftLayer
from eyas.model.drafter import Drafter
from eyas.train.chain_attention import chain_attention


def unroll(
    drafter: Drafter, ids_BT: Tensor, captured_BTC: Tensor, steps: int, first: int = 0
) -> Iterator[Tensor]:
    """The decoder output [B, T - first, H] of each step at slots `first`.., before the final norm.

    `ids_BT` and `captured_BTC` are aligned: token and states of the same position. Slot i of
    step k is meaningful where position i+1+k exists; the rest is computed from id 0. Slots before
    `first` lend their step-0 keys, and cost no more than these.
    """
    length = ids_BT.shape[1]
    padded = torch.nn.functional.pad(ids_BT, (0, steps))
    positions_T = torch.arange(length, device=ids_BT.device)
    hidden = drafter.fuse(captured_BTC)
    layers = drafter.decoder
    mixers = [_Mixer(layer) for layer in layers]
    begin = 0
    for step in range(steps):
        embedded = drafter.embed(padded[:, begin + 1 + step : 1 + step + length])
        tables = drafter.rope_at(positions_T[None, begin:] + step)
        for number, (layer, mixer) in enumerate(zip(layers, mixers, strict=True), 1):
            x, residual = layer.entry(embedded, hidden)
            # a further layer reads what this one puts out at every slot
            skipped = first - begin if number == len(layers) else 0
            hidden = layer.leave(residual[:, skipped:], mixer(x, tables, skipped))
        yield hidden
        hidden = drafter.feedback(hidden)
        begin = first


class _Mixer:
    """The attention of one layer over the steps: step-0 keys in full, later ones slot by slot."""

    def __init__(self, layer: DraftLayer) -> None:
        self._attention = layer.self_attn
        self._shared: tuple[Tensor, Tensor] | None = None
        self._own: list[tuple[Tensor, Tensor]] = []

    def __call__(self, x: Tensor, tables: tuple[Tensor, Tensor], skipped: int) -> Tensor:
        """This step's values [B, heads, A, E] mixed for the slots after the `skipped` ones."""
        q, k, v = self._attention.project(x, *tables)
        group = q.shape[1] // k.shape[1]
        pair = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        if self._shared is None:
            self._shared = pair
        else:
            self._own.append(pair)
        return chain_attention(q[:, :, skipped:], *self._shared, self._own, self._attention.scale)
