"""Soft-label cross-entropy through the draft head, without holding the logits.

Row chunks of logits are made, turned into gradients at once, and dropped. N rows, H width,
V draft vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

ROWS_PER_CHUNK = 512


class SoftCrossEntropy(torch.autograd.Function):
    """sum_n w_n · (−Σ_v p_nv · log softmax(x_n Wᵀ)_v), with the count of matching argmaxes."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, x_NH: Tensor, head_VH: Tensor, p_NV: Tensor, weight_N: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """The loss, and both gradients at once."""
        head = head_VH.to(dtype)
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        grad_x = torch.empty_like(x_NH)
        grad_head = torch.zeros_like(head_VH)
        loss = torch.zeros((), dtype=wide, device=x_NH.device)
        matches = torch.zeros((), dtype=torch.int64, device=x_NH.device)
        for begin in range(0, len(x_NH), ROWS_PER_CHUNK):
            rows = slice(begin, begin + ROWS_PER_CHUNK)
            x, p, weight = x_NH[rows].to(dtype), p_NV[rows].to(wide), weight_N[rows].to(wide)
            logits = (x @ head.T).to(wide)
            matches += (logits.argmax(-1) == p.argmax(-1)).sum()
            log_q = logits.log_softmax(-1)
            loss -= (weight * (p * log_q).sum(-1)).sum()
            gradient = ((log_q.exp_().sub_(p)).mul_(weight[:, None])).to(dtype)
            grad_x[rows] = (gradient @ head).to(x_NH.dtype)
            grad_head += (gradient.T @ x).to(grad_head.dtype)
        ctx.save_for_backward(grad_x, grad_head)
        ctx.mark_non_differentiable(matches)
        return loss, matches

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        """The kept gradients, scaled."""
        grad_x, grad_head = ctx.saved_tensors
        scale = grad_loss
        return (
            grad_x * scale.to(grad_x.dtype),
            grad_head * scale.to(grad_head.dtype),
            None,
            None,
            None,
        )


def soft_cross_entropy(
    x_NH: Tensor, head_VH: Tensor, p_NV: Tensor, weight_N: Tensor, *, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """(weighted sum of the soft-label cross-entropy, number of rows whose argmaxes match).

    `p_NV` are the teacher's probabilities, constant; matrix products run in `dtype`. Rows of `p`
    are taken to sum to one: the gradient uses it.
    """
    loss, matches = SoftCrossEntropy.apply(x_NH, head_VH, p_NV, weight_N, dtype)
    return loss, matches
