"""Soft-label cross-entropy through the draft head, without holding the logits.

All draft steps are scored against one teacher, so what depends on it alone is made once. Row
chunks of logits are made, turned into gradients at once, and dropped. K steps, N rows, H width,
V draft vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

# A chunk's logits (256 x 8192) stay within a core's share of the cache; a block's gradients are
# held whole, since the head's gradient, as large as the head, is added to once a block.
ROWS_PER_CHUNK = 256
ROWS_PER_BLOCK = 512


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
        # max, for argmax is several times slower in bfloat16
        return cls(p_NV=logits_NV.softmax(-1), top_N=logits_NV.max(-1).indices)


class _SoftCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x_KNH: Tensor, head_VH: Tensor, p_NV: Tensor, top_N: Tensor, weight_KN: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The loss with both gradients at once; products run in the dtype of `p_NV`."""
        dtype = p_NV.dtype
        wide = torch.promote_types(dtype, torch.float32)
        head, weight_KN1 = head_VH.to(dtype), weight_KN[..., None].to(wide)
        grad_x, grad_head = torch.empty_like(x_KNH), torch.zeros_like(head_VH)
        loss_K = x_KNH.new_zeros(len(x_KNH), dtype=wide)
        matches_K = torch.zeros(len(x_KNH), dtype=torch.int64, device=x_KNH.device)
        for begin in range(0, len(p_NV), ROWS_PER_BLOCK):
            block = slice(begin, begin + ROWS_PER_BLOCK)
            x_KRH, p, top = x_KNH[:, block].to(dtype), p_NV[block], top_N[block, None]
            weight = weight_KN1[:, block]
            # the teacher's mean row of the head: its product with x is the mean logit
            mean_RH = p @ head
            gradient = p.new_empty(len(x_KRH), *p.shape)
            for step, x in enumerate(x_KRH):
                for start in range(0, len(x), ROWS_PER_CHUNK):
                    rows = slice(start, start + ROWS_PER_CHUNK)
                    logits = x[rows] @ head.T
                    q = logits.softmax(-1)
                    q_top = q.gather(-1, top[rows])
                    counted = weight[step, rows] > 0
                    matches_K[step] += (counted & (q_top == q.amax(-1, keepdim=True))).sum()
                    # log of the softmax's denominator, from one entry of it
                    log_sum = logits.gather(-1, top[rows]).to(wide)
                    log_sum -= q_top.to(wide).clamp_min(1e-38).log()
                    expected = (x[rows] * mean_RH[rows]).sum(-1, keepdim=True, dtype=wide)
                    loss_K[step] += (weight[step, rows] * (log_sum - expected)).sum()
                    torch.sub(q, p[rows], out=gradient[step, rows])
            # weights are applied where rows are narrow
            grad_x[:, block] = (gradient @ head) * weight.to(grad_x.dtype)
            weighted = (x_KRH * weight.to(dtype)).flatten(0, 1)
            grad_head += gradient.flatten(0, 1).T @ weighted
        ctx.save_for_backward(grad_x, grad_head)
        ctx.mark_non_differentiable(loss_K, matches_K)
        return loss_K.sum(), loss_K, matches_K

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        """The kept gradients, scaled."""
        grad_x, grad_head = ctx.saved_tensors
        scaled = (grad_x * grad_loss.to(grad_x.dtype), grad_head * grad_loss.to(grad_head.dtype))
        return *scaled, None, None, None


def soft_cross_entropy(
    x_KNH: Tensor, head_VH: Tensor, teacher: Teacher, weight_KN: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Σ_kn w_kn · (−Σ_v p_nv · log softmax(x_kn Wᵀ)_v), its parts by step, and matching argmaxes.

    The latter two, [K] each, are for reports: no gradient flows through them, and rows without
    weight count in none of them. The teacher is constant, and its dtype is that of the products.
    """
    inputs = (x_KNH, head_VH, teacher.p_NV, teacher.top_N, weight_KN)
    total, loss_K, matches_K = _SoftCrossEntropy.apply(*inputs)  # type: ignore[no-untyped-call]
    return total, loss_K, matches_K
