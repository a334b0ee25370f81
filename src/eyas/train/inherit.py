"""A new drafter that starts where an older one stands, over another draft vocabulary."""

from __future__ import annotations

import torch
from torch import Tensor

from eyas.errors import UsageError
from eyas.model.drafter import Drafter


@torch.no_grad()
def inherit(drafter: Drafter, older: Drafter, target_head_VH: Tensor) -> int:
    """Give `drafter` the weights of `older`; returns how many rows of the head came with them.

    A row of the head that `older` has not is the target's own, moved as `older`'s rows have moved
    from theirs on average: what all rows have in common shifts all logits alike, so a row without
    it would be far off. Raises UsageError when the two differ in more than their vocabulary.
    """
    given, wanted = dict(older.named_parameters()), dict(drafter.named_parameters())
    unlike = [
        name
        for name in sorted(given.keys() | wanted.keys())
        if name != "lm_head.weight"
        and (name not in given or name not in wanted or given[name].shape != wanted[name].shape)
    ]
    if unlike or "lm_head.weight" not in given or "lm_head.weight" not in wanted:
        what = unlike[0] if unlike else "lm_head.weight"
        raise UsageError(f"the older drafter is of another form: `{what}` differs")
    for name, parameter in wanted.items():
        if name != "lm_head.weight":
            parameter.copy_(given[name])
    ids_V, older_ids_V = _kept(drafter), _kept(older)
    places = torch.full((len(target_head_VH),), -1)
    places[older_ids_V] = torch.arange(len(older_ids_V))
    row_V = places[ids_V]
    known = row_V >= 0
    moved_VH = given["lm_head.weight"] - target_head_VH[older_ids_V].to(given["lm_head.weight"])
    head_VH = target_head_VH[ids_V].to(moved_VH) + moved_VH.mean(0)
    head_VH[known] = given["lm_head.weight"][row_V[known]]
    wanted["lm_head.weight"].copy_(head_VH)
    return int(known.sum())


def _kept(drafter: Drafter) -> Tensor:
    device = drafter.norm.weight.device
    return drafter.target_ids(torch.arange(drafter.shape.draft_vocab, device=device)).cpu()
