"""Long prompts in pieces: a forward of T tokens makes a mask of T x S, which grows as a square."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eyas.model.draft_cache import DraftCache
from eyas.model.drafter import Drafter
from eyas.model.target import Reading, Target, TargetCache

PIECE = 256


def read_prompt(
    target: Target, ids_BT: Tensor, cache: TargetCache, boundaries: Sequence[int] = ()
) -> Reading:
    """The target's reading of all of `ids_BT`, which it takes in pieces of at most `PIECE`."""
    readings = [
        target.forward(piece, cache, boundaries) for piece in torch.split(ids_BT, PIECE, dim=1)
    ]
    captured = [r.captured_BTC for r in readings if r.captured_BTC is not None]
    return Reading(
        final_BTH=torch.cat([reading.final_BTH for reading in readings], dim=1),
        captured_BTC=torch.cat(captured, dim=1) if captured else None,
    )


def last_output(drafter: Drafter, ids_1T: Tensor, hidden_1TH: Tensor, cache: DraftCache) -> Tensor:
    """The drafter's output, [1, 1, H], at the last of the pairs, taken in pieces of `PIECE`."""
    ids, hidden = (torch.split(whole, PIECE, dim=1) for whole in (ids_1T, hidden_1TH))
    outputs = [drafter.step(*pair, cache)[:, -1:] for pair in zip(ids, hidden, strict=True)]
    return outputs[-1]
