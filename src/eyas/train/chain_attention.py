"""Attention of an unrolled drafter: many shared keys, and a few keys of each slot's own.

The shared keys are read by a flash kernel; the own keys are a dot product each. Parts are merged
by their log-sum-exps, so no scores of T x T, and no mask over 3 T keys, are kept. On a GPU the
kernel is flex attention's, whose log-sum-exp has a gradient. The CPU's has none: there the shared
keys are read in one part that all queries see whole and one that is causal, and every part's
gradient follows from the merged output and log-sum-exp, as in ring attention (arXiv 2310.01889).

Shapes: queries [B, heads, A, D] of the last A slots; shared keys [B, heads, T, D] and values
[B, heads, T, E]; own keys and values like queries, one pair for each earlier step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

# The only form of the kernel that hands out the log-sum-exp; constraints.txt pins torch.
flash_cpu = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001
flash_cpu_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward  # noqa: SLF001


def chain_attention(
    q: Tensor, k: Tensor, v: Tensor, own: list[tuple[Tensor, Tensor]], scale: float
) -> Tensor:
    """Values mixed for each query: shared keys up to its own slot, and the slot's `own` keys."""
    if q.shape[2] > k.shape[2]:
        raise ValueError(f"{q.shape[2]} slots ask, but only {k.shape[2]} have keys")
    if q.device.type == "cuda":
        return flex_chain(compiled_flex(), q, k, v, own, scale)
    flat = [tensor for pair in own for tensor in pair]
    mixed: Tensor = _ChainAttention.apply(q, k, v, scale, *flat)  # type: ignore[no-untyped-call]
    return mixed


class _ChainAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float, *own: Tensor) -> Tensor:
        wide = torch.promote_types(q.dtype, torch.float32)
        first = k.shape[2] - q.shape[2]
        out, lse = _attend(q, k[:, :, first:], v[:, :, first:], causal=True, scale=scale)
        parts = [(out, lse)]
        if first:
            parts.append(_attend(q, k[:, :, :first], v[:, :, :first], causal=False, scale=scale))
        for key, value in zip(own[::2], own[1::2], strict=True):
            parts.append((value, (q * key).sum(-1, dtype=wide) * scale))
        if len(parts) > 1:
            out, lse = _merged(parts)
        ctx.scale = scale
        ctx.save_for_backward(q, k, v, out, lse, *own)
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, lse, *own = ctx.saved_tensors
        scale, first = ctx.scale, k.shape[2] - q.shape[2]
        grad_out = grad_out.contiguous()
        arguments = (grad_out, q, out, lse, scale)
        grad_q, grad_k, grad_v = _attend_backward(
            *arguments, k[:, :, first:], v[:, :, first:], causal=True
        )
        if first:
            more_q, prefix_k, prefix_v = _attend_backward(
                *arguments, k[:, :, :first], v[:, :, :first], causal=False
            )
            grad_q = grad_q + more_q
            grad_k = torch.cat([prefix_k, grad_k], dim=2)
            grad_v = torch.cat([prefix_v, grad_v], dim=2)
        grads: list[Tensor] = []
        if own:
            wide = lse.dtype
            delta = (grad_out * out).sum(-1, dtype=wide)
            for key, value in zip(own[::2], own[1::2], strict=True):
                share = ((q * key).sum(-1, dtype=wide) * scale - lse).exp()
                grad_share = (grad_out * value).sum(-1, dtype=wide) - delta
                grad_score = (share * grad_share * scale)[..., None].to(q.dtype)
                grad_q = grad_q + grad_score * key
                grads += [grad_score * q, share[..., None].to(q.dtype) * grad_out]
        return grad_q, grad_k, grad_v, None, *grads


def flex_chain(
    flex: Callable[..., Any],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    own: list[tuple[Tensor, Tensor]],
    scale: float,
) -> Tensor:
    """`chain_attention` by `flex_attention`, as it is or compiled."""
    from torch.nn.attention.flex_attention import AuxRequest, create_block_mask

    asked, held = q.shape[2], k.shape[2]

    def no_later(_b: Tensor, _h: Tensor, slot: Tensor, key: Tensor) -> Tensor:
        return key <= slot + (held - asked)

    mask = create_block_mask(no_later, None, None, asked, held, device=q.device.type)
    out, aux = flex(q, k, v, block_mask=mask, scale=scale, return_aux=AuxRequest(lse=True))
    wide = torch.promote_types(q.dtype, torch.float32)
    parts = [(out, aux.lse.to(wide))]
    parts += [(value, (q * key).sum(-1, dtype=wide) * scale) for key, value in own]
    return _merged(parts)[0] if own else out


@cache
def compiled_flex() -> Callable[..., Any]:
    """flex attention as a kernel: without compiling it would hold the scores."""
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=True)


def _merged(parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    lse = torch.stack([part for _, part in parts]).logsumexp(0)
    shares = [out.to(lse.dtype) * (part - lse).exp()[..., None] for out, part in parts]
    return torch.stack(shares).sum(0).to(parts[0][0].dtype), lse


def _attend(
    q: Tensor, k: Tensor, v: Tensor, *, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    """(mixed values, log-sum-exp [B, heads, A]) of one part."""
    if _has_kernel(q, v):
        out, lse = flash_cpu(q, k, v, 0.0, causal, scale=scale)
        return out, lse
    scores = _scores(q, k, causal=causal, scale=scale)
    lse = scores.logsumexp(-1)
    return (scores - lse[..., None]).exp().to(v.dtype) @ v, lse


def _attend_backward(
    grad_out: Tensor,
    q: Tensor,
    out: Tensor,
    lse: Tensor,
    scale: float,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """One part's share of the gradients; `out` and `lse` are those of all parts together."""
    if _has_kernel(q, v):
        grads: tuple[Tensor, Tensor, Tensor] = flash_cpu_backward(
            grad_out, q, k, v, out, lse, 0.0, causal, scale=scale
        )
        return grads
    shares = (_scores(q, k, causal=causal, scale=scale) - lse[..., None]).exp()
    grad_shares = (grad_out @ v.transpose(-1, -2)).to(lse.dtype)
    delta = (grad_out * out).sum(-1, keepdim=True, dtype=lse.dtype)
    grad_scores = (shares * (grad_shares - delta) * scale).to(q.dtype)
    grad_k = grad_scores.transpose(-1, -2) @ q
    return grad_scores @ k, grad_k, shares.to(v.dtype).transpose(-1, -2) @ grad_out


def _has_kernel(q: Tensor, v: Tensor) -> bool:
    # latent attention's values are narrower than its keys
    return q.device.type == "cpu" and q.shape[-1] == v.shape[-1]


def _scores(q: Tensor, k: Tensor, *, causal: bool, scale: float) -> Tensor:
    scores = (q @ k.transpose(-1, -2)).to(torch.promote_types(q.dtype, torch.float32)) * scale
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return scores
