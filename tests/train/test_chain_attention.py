"""Attention over shared and own keys against the one softmax that it stands for, in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from eyas.train.chain_attention import chain_attention, flex_chain

SCALE = 0.3
Own = list[tuple[Tensor, Tensor]]


def naive(q: Tensor, k: Tensor, v: Tensor, own: Own) -> Tensor:
    """All keys of a slot in one row of scores."""
    asked, held = q.shape[2], k.shape[2]
    hidden = torch.ones(asked, held, dtype=torch.bool).triu(held - asked + 1)
    shared = (q @ k.transpose(-1, -2) * SCALE).masked_fill(hidden, float("-inf"))
    extra = [(q * key).sum(-1, keepdim=True) * SCALE for key, _ in own]
    weights = torch.cat([shared, *extra], dim=-1).softmax(-1)
    mixed = weights[..., :held] @ v
    for number, (_, value) in enumerate(own):
        mixed = mixed + weights[..., held + number, None] * value
    return mixed


def inputs(asked: int, held: int, steps: int, width: int) -> tuple[Tensor, Tensor, Tensor, Own]:
    chance = torch.Generator().manual_seed(asked + held + steps + width)

    def random(slots: int, channels: int) -> Tensor:
        shape = (2, 3, slots, channels)
        return torch.randn(shape, generator=chance, dtype=torch.float64).requires_grad_()

    own = [(random(asked, 8), random(asked, width)) for _ in range(steps)]
    return random(asked, 8), random(held, 8), random(held, width), own


@pytest.mark.parametrize("width", [8, 6], ids=["values-as-wide-as-keys", "narrower-values"])
@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize(("asked", "held"), [(9, 9), (5, 9), (1, 70), (40, 70)])
def test_values_and_gradients(asked: int, held: int, steps: int, width: int) -> None:
    q, k, v, own = inputs(asked, held, steps, width)
    given = [q, k, v, *[tensor for pair in own for tensor in pair]]
    wanted = naive(q, k, v, own)
    towards = torch.linspace(-1, 1, wanted.numel(), dtype=wanted.dtype).view_as(wanted)
    found = chain_attention(q, k, v, own, SCALE)
    torch.testing.assert_close(found, wanted, atol=1e-10, rtol=0)
    pairs = zip(
        torch.autograd.grad(found, given, towards),
        torch.autograd.grad(wanted, given, towards),
        strict=True,
    )
    for gradient, expected in pairs:
        torch.testing.assert_close(gradient, expected, atol=1e-10, rtol=0)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize(("asked", "held"), [(9, 9), (5, 9)])
def test_the_form_for_gpus_gives_the_same_values(asked: int, held: int, steps: int) -> None:
    """Its gradients are flex attention's own, which has none on a CPU."""
    q, k, v, own = inputs(asked, held, steps, 8)
    constant = q.detach(), k.detach(), v.detach()
    found = flex_chain(flex_attention, *constant, own, SCALE)
    torch.testing.assert_close(found, naive(q, k, v, own), atol=1e-6, rtol=0)


def test_more_queries_than_keys_are_refused() -> None:
    q, k, v, own = inputs(9, 9, 0, 8)
    with pytest.raises(ValueError, match="9 slots ask, but only 8 have keys"):
        chain_attention(q, k[:, :, 1:], v[:, :, 1:], own, SCALE)
