"""How often a drafter's choice is the target's on examples it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from eyas.data.states import StateStore
from eyas.errors import UsageError
from eyas.model.drafter import Drafter
from eyas.train.batches import Batch, Weighing, batch_plan, make_batch
from eyas.train.settings import Scoring
from eyas.train.unroll import unroll

POSITIONS_PER_CHUNK = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutScore:
    """Shares of answer positions where the drafter's argmax is the target's (full vocabulary).

    `accuracy[k]` is step k alone, `cumulative[k]` steps 0..k all right at the same slot.
    `expected_tau` = 1 + Σ cumulative: the mean acceptance length (bonus included) of a greedy
    chain as long as the unrolling, were every position the start of a round.
    """

    accuracy: tuple[float, ...]
    cumulative: tuple[float, ...]
    positions: int

    @property
    def expected_tau(self) -> float:
        """1 + the sum of the cumulative shares."""
        return 1.0 + sum(self.cumulative)


def scorable(store: StateStore, index: int, scoring: Scoring) -> bool:
    """Whether an example has a slot with all steps ahead of it in its answer."""
    weighing = _answers_alone(scoring)
    first, end = weighing.span(store.length(index), store.prompt_length(index))
    return end - first >= scoring.unroll_steps


def check_scorable(store: StateStore, indices: Sequence[int], scoring: Scoring) -> None:
    """UsageError unless one of the examples is `scorable`."""
    if any(scorable(store, index, scoring) for index in indices):
        return
    raise UsageError(
        f"none of the {len(indices)} held-out answers has {scoring.unroll_steps} tokens"
        f" within the first {scoring.max_length} positions, so there is nothing to score",
        hint="hold out more examples, or capture longer answers",
    )


def _answers_alone(scoring: Scoring) -> Weighing:
    return Weighing(max_length=scoring.max_length, prompt_weight=0.0, prompt_reach=0)


@torch.inference_mode()
def held_out_score(
    drafter: Drafter,
    target_head_VH: Tensor,
    store: StateStore,
    indices: Sequence[int],
    captured_scale_C: Tensor,
    scoring: Scoring,
) -> HeldOutScore:
    """Score the examples `indices` of `store`, answers only, on the device of the target's head.

    Raises UsageError when no answer is long enough for one slot.
    """
    check_scorable(store, indices, scoring)
    steps, device = scoring.unroll_steps, target_head_VH.device
    right = torch.zeros(steps)
    together = torch.zeros(steps)
    slots = 0
    weighing = _answers_alone(scoring)
    plan = batch_plan(store, indices, weighing, tokens=scoring.batch_tokens, seed="held")
    for chosen in plan:
        batch = make_batch(store, chosen, captured_scale_C, weighing, device=device)
        if not scoring.bf16:  # else autocast takes states of any type
            batch = _cast(batch, drafter.norm.weight.dtype)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=scoring.bf16):
            hits_NK = _hits(drafter, target_head_VH, batch, steps)
        right += hits_NK.sum(0).cpu()
        together += hits_NK.cumprod(-1).sum(0).cpu()
        slots += len(hits_NK)
    return HeldOutScore(
        accuracy=tuple((right / slots).tolist()),
        cumulative=tuple((together / slots).tolist()),
        positions=slots,
    )


def _cast(batch: Batch, dtype: torch.dtype) -> Batch:
    return replace(
        batch, captured_BTC=batch.captured_BTC.to(dtype), final_BTH=batch.final_BTH.to(dtype)
    )


def _hits(drafter: Drafter, target_head_VH: Tensor, batch: Batch, steps: int) -> Tensor:
    """For each slot that has all steps ahead of it in the answer: which steps are right, [N, K]."""
    weight = F.pad(batch.weight_BT, (0, steps + 1))
    length = batch.ids_BT.shape[1]
    ahead = [weight[:, 1 + step : 1 + step + length] for step in range(steps)]
    rows, slots = torch.stack(ahead).amin(0).nonzero(as_tuple=True)
    first = int(slots.min())
    slots = slots - first
    truth_BT = _argmax(batch.final_BTH[:, first:], target_head_VH.to(batch.final_BTH.dtype))
    hits = []
    outputs = unroll(drafter, batch.ids_BT, batch.captured_BTC, steps, first)
    for step, output_BTH in enumerate(outputs):
        chosen_NH = drafter.norm(output_BTH[rows, slots])
        guesses = drafter.target_ids(_argmax(chosen_NH, drafter.head_VH))
        hits.append(guesses == truth_BT[rows, slots + 1 + step])
    return torch.stack(hits, dim=-1).long()


def _argmax(states: Tensor, head: Tensor) -> Tensor:
    """The argmax of head · state, a chunk at a time: whole logits would not fit."""
    flat = states.reshape(-1, states.shape[-1])
    chosen = [
        F.linear(flat[begin : begin + POSITIONS_PER_CHUNK], head).argmax(-1)
        for begin in range(0, len(flat), POSITIONS_PER_CHUNK)
    ]
    return torch.cat(chosen).reshape(states.shape[:-1])
