"""The test-time-training loss of a batch: soft cross-entropy with the target at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eyas.model.drafter import Drafter
from eyas.train.batches import Batch
from eyas.train.soft_loss import Teacher, soft_cross_entropy
from eyas.train.unroll import unroll


@dataclass(frozen=True, slots=True, kw_only=True)
class StepScores:
    """Of one draft step: mean loss, and at how many positions the argmax is the teacher's."""

    loss: float
    matches: int
    positions: int

    @property
    def accuracy(self) -> float:
        """The share of positions whose argmax is the teacher's."""
        return self.matches / max(self.positions, 1)

    @classmethod
    def summed(cls, parts: Sequence[StepScores]) -> StepScores:
        """Of a batch, from its parts that were normalised together."""
        return cls(
            loss=sum(part.loss for part in parts),
            matches=sum(part.matches for part in parts),
            positions=sum(part.positions for part in parts),
        )


def step_weights(weights_BT: Sequence[Tensor], steps: int) -> Tensor:
    """How much each step's positions weigh together, [K], in batches that are scored as one.

    A chain that reaches position j at step k started at position j-1-k, which must exist.
    """
    sums = [
        torch.stack([weight[:, 1 + step :].sum() for weight in weights_BT]).sum()
        for step in range(steps)
    ]
    return torch.stack(sums).clamp_min(1e-6)


def unrolled_loss(
    drafter: Drafter,
    teacher_head_VH: Tensor,
    batch: Batch,
    *,
    steps: int,
    step_decay: float,
    dtype: torch.dtype,
    weighed_K: Tensor | None = None,
) -> tuple[Tensor, list[StepScores]]:
    """Σ_k step_decay^k · (weighted mean over positions of the soft cross-entropy at step k).

    `teacher_head_VH` holds the target's head rows of the draft vocabulary; products run in
    `dtype`. Position j's prediction of x_{j+1} is made at step k by slot j-1-k. `weighed_K` are
    the `step_weights` of all that is scored as one: this batch's own unless given.
    """
    rows, positions = batch.weight_BT.nonzero(as_tuple=True)
    teacher = Teacher.of(batch.final_BTH[rows, positions].to(dtype), teacher_head_VH)
    first = max(int(positions.min()) - steps, 0)
    slots_KN = torch.stack([positions - first - 1 - step for step in range(steps)])
    # a position whose chain would have started before the text counts at the earlier steps alone
    weight_KN = batch.weight_BT[rows, positions] * (slots_KN >= 0)
    share_K = step_weights([batch.weight_BT], steps) if weighed_K is None else weighed_K
    decay_K = torch.tensor([step_decay**step for step in range(steps)], device=share_K.device)
    outputs = unroll(drafter, batch.ids_BT, batch.captured_BTC, steps, first)
    chosen_KNH = torch.stack(
        [
            drafter.norm(output_BTH[rows, slots_N.clamp_min(0)])
            for slots_N, output_BTH in zip(slots_KN, outputs, strict=True)
        ]
    )
    total, loss_K, matches_K = soft_cross_entropy(
        chosen_KNH, drafter.head_VH, teacher, weight_KN * (decay_K / share_K)[:, None]
    )
    scores = [
        StepScores(loss=loss, matches=matches, positions=count)
        for loss, matches, count in zip(
            (loss_K / decay_K).tolist(),
            matches_K.tolist(),
            (weight_KN > 0).sum(-1).tolist(),
            strict=True,
        )
    ]
    return total, scores
