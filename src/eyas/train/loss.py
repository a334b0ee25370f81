"""The test-time-training loss of a batch: soft cross-entropy with the target at every step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from eyas.model.drafter import Drafter
from eyas.train.batches import Batch
from eyas.train.soft_loss import Teacher, soft_cross_entropy
from eyas.train.unroll import unroll


@dataclass(frozen=True, slots=True, kw_only=True)
class StepScores:
    """Of one draft step: mean loss, and the share of positions whose argmax is the teacher's."""

    loss: float
    accuracy: float
    positions: int


def unrolled_loss(
    drafter: Drafter,
    teacher_head_VH: Tensor,
    batch: Batch,
    *,
    steps: int,
    step_decay: float,
    dtype: torch.dtype,
) -> tuple[Tensor, list[StepScores]]:
    """Σ_k step_decay^k · (weighted mean over positions of the soft cross-entropy at step k).

    `teacher_head_VH` holds the target's head rows of the draft vocabulary; products run in
    `dtype`. Position j's prediction of x_{j+1} is made at step k by slot j-1-k.
    """
    rows, positions = batch.weight_BT.nonzero(as_tuple=True)
    teacher = Teacher.of(batch.final_BTH[rows, positions].to(dtype), teacher_head_VH)
    first = max(int(positions.min()) - steps, 0)
    slots_KN = torch.stack([positions - first - 1 - step for step in range(steps)])
    # a position whose chain would have started before the text counts at the earlier steps alone
    weight_KN = batch.weight_BT[rows, positions] * (slots_KN >= 0)
    share_K1 = weight_KN.sum(-1, keepdim=True).clamp_min(1e-6)
    decay_K1 = torch.tensor([[step_decay**step] for step in range(steps)], device=share_K1.device)
    outputs = unroll(drafter, batch.ids_BT, batch.captured_BTC, steps, first)
    chosen_KNH = torch.stack(
        [
            drafter.norm(output_BTH[rows, slots_N.clamp_min(0)])
            for slots_N, output_BTH in zip(slots_KN, outputs, strict=True)
        ]
    )
    total, loss_K, matches_K = soft_cross_entropy(
        chosen_KNH, drafter.head_VH, teacher, weight_KN * decay_K1 / share_K1
    )
    scores = [
        StepScores(loss=loss, accuracy=matches / max(count, 1), positions=count)
        for loss, matches, count in zip(
            (loss_K / decay_K1[:, 0]).tolist(),
            matches_K.tolist(),
            (weight_KN > 0).sum(-1).tolist(),
            strict=True,
        )
    ]
    return total, scores
