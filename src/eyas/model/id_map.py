"""Whether a drafter's map of ids can be followed."""

from __future__ import annotations

import torch
from torch import Tensor

from eyas.spec import VocabMap


def fault_of_map(d2t_V: Tensor, kind: VocabMap, vocabulary: int) -> str | None:
    """What is wrong with a map of draft ids to ids of a target of `vocabulary`; None if nothing."""
    ids_V = d2t_V.to(torch.int64)
    if kind is VocabMap.OFFSETS:
        ids_V = ids_V + torch.arange(len(ids_V))
    outside = ids_V[(ids_V < 0) | (ids_V >= vocabulary)]
    if not len(outside):
        return None
    return f"its map names token {int(outside[0])} of a vocabulary of {vocabulary}"
