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
    weights_N = batch.weight_BT[rows, positions]
    teacher = Teacher.of(batch.final_BTH[rows, positions].to(dtype), teacher_head_VH)
    wide = torch.promote_types(dtype, torch.float32)
    total = torch.zeros((), dtype=wide, device=weights_N.device)
    scores = []
    outputs = unroll(drafter, batch.ids_BT, batch.captured_BTC, steps)
    for step, output_BTH in enumerate(outputs):
        slots = positions - 1 - step
        real = slots >= 0
        chosen_NH = drafter.norm(output_BTH[rows[real], slots[real]])
        summed, matches = soft_cross_entropy(
            chosen_NH, drafter.head_VH, teacher.rows(real), weights_N[real]
        )
        mean = summed / weights_N[real].sum().clamp_min(1e-6)
        total = total + mean * step_decay**step
        count = int(real.sum())
        scores.append(
            StepScores(
                loss=float(mean.detach()),
                accuracy=int(matches) / max(count, 1),
                positions=count,
            )
        )
    return total, scores
