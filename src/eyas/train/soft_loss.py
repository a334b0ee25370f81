"""Soft-label cross-entropy through the draft head, without holding the logits.

Row chunks of logits are made, turned into gradients at once, and dropped. N rows, H width,
V draft vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

# A chunk's float32 probabilities (256 x 8192) stay within a core's share of the cache.
ROWS_PER_CHUNK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Teacher:
    """What the drafter should say: probabilities [N, V] whose rows sum to one, and their argmax."""

    p_NV: Tensor
    top_N: Tensor

    @classmethod
    def of(cls, final_NH: Tensor, head_VH: Tensor) -> Teacher:
        """softmax over the draft vocabulary of the target's logits.

        `final_NH` are the target's states after its final norm, `head_VH` its head's rows of the
        draft vocabulary; the product and the result have the states' dtype.
        """
        logits_NV = final_NH @ head_VH.to(final_NH.dtype).T
        return cls(p_NV=logits_NV.softmax(-1), top_N=logits_NV.argmax(-1))

    def rows(self, chosen: Tensor) -> Teacher:
        """The rows that a mask keeps."""
        return Teacher(p_NV=self.p_NV[chosen], top_N=self.top_N[chosen])


class SoftCrossEntropy(torch.autograd.Function):
    """sum_n w_n · (−Σ_v p_nv · log softmax(x_n Wᵀ)_v), with the count of matching argmaxes."""

    @staticmethod
    def forward(
        ctx: Any, x_NH: Tensor, head_VH: Tensor, p_NV: Tensor, top_N: Tensor, weight_N: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The loss, and both gradients at once; products run in the dtype of `p_NV`."""
        dtype = p_NV.dtype
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        head = head_VH.to(dtype)
        grad_x, grad_head = torch.empty_like(x_NH), torch.zeros_like(head_VH)
        loss = torch.zeros((), dtype=wide, device=x_NH.device)
        matches = torch.zeros((), dtype=torch.int64, device=x_NH.device)
        for begin in range(0, len(x_NH), ROWS_PER_CHUNK):
            rows = slice(begin, begin + ROWS_PER_CHUNK)
            x, p, top_N1 = x_NH[rows].to(dtype), p_NV[rows], top_N[rows, None]
            weight_N1 = weight_N[rows, None].to(wide)
            logits = x @ head.T
            q = logits.softmax(-1, dtype=wide)
            q_top_N1 = q.gather(-1, top_N1)
            matches += (q_top_N1 == q.amax(-1, keepdim=True)).sum()
            # log of the softmax's denominator, from one entry of it
            log_sum_N1 = logits.gather(-1, top_N1).to(wide) - q_top_N1.clamp_min(1e-38).log()
            expected_N1 = (p * logits).sum(-1, keepdim=True, dtype=wide)
            loss += (weight_N1 * (log_sum_N1 - expected_N1)).sum()
            gradient = q.sub_(p).mul_(weight_N1).to(dtype)
            grad_x[rows] = (gradient @ head).to(x_NH.dtype)
            grad_head += gradient.T @ x
        ctx.save_for_backward(grad_x, grad_head)
        ctx.mark_non_differentiable(matches)
        return loss, matches

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        """The kept gradients, scaled."""
        grad_x, grad_head = ctx.saved_tensors
        scaled = (grad_x * grad_loss.to(grad_x.dtype), grad_head * grad_loss.to(grad_head.dtype))
        return *scaled, None, None, None


def soft_cross_entropy(
    x_NH: Tensor, head_VH: Tensor, teacher: Teacher, weight_N: Tensor
) -> tuple[Tensor, Tensor]:
    """(weighted sum of the soft-label cross-entropy, number of rows whose argmaxes match).

    The teacher is constant, and its dtype is that of the matrix products.
    """
    inputs = (x_NH, head_VH, teacher.p_NV, teacher.top_N, weight_N)
    loss, matches = SoftCrossEntropy.apply(*inputs)  # type: ignore[no-untyped-call]
    return loss, matches
