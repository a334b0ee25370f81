"""The drafter and its unrolled loss against formulas written out slot by slot in float64.

The reference below shares no code with the product: it has no cache, no batch and no mask. For
each slot it writes down the list of keys that the paper (arXiv 2503.01840) lets a chain see.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

from eyas.model.drafter import Drafter
from eyas.spec import Feedback
from eyas.train.batches import Batch
from eyas.train.loss import unrolled_loss
from eyas.train.unroll import unroll

HEADS, KV_HEADS, WIDTH, EPS, THETA = 4, 2, 6, 1e-5, 100.0
LENGTH, STEPS = 7, 3
CONVENTIONS = [
    {
        "residual": residual,
        "feedback": feedback,
        "fc_norm": norms == "fc",
        "input_norm": norms == "in",
    }
    for residual, feedback, norms in product((False, True), Feedback, ("none", "fc", "in"))
]


def rms(x: Tensor, gain: Tensor) -> Tensor:
    return gain * x / torch.sqrt((x * x).sum() / len(x) + EPS)


def turned(x: Tensor, position: int) -> Tensor:
    """Each pair (j, j + half) of a head rotated by position / theta^(2j / width)."""
    half = len(x) // 2
    out: list[Tensor] = [x[0]] * len(x)
    for j in range(half):
        angle = position / THETA ** (2 * j / len(x))
        out[j] = x[j] * math.cos(angle) - x[j + half] * math.sin(angle)
        out[j + half] = x[j + half] * math.cos(angle) + x[j] * math.sin(angle)
    return torch.stack(out)


class Reference:
    def __init__(self, drafter: Drafter, conventions: dict[str, object]) -> None:
        self.w = dict(drafter.named_parameters())
        self.embedding = drafter.embedding_VH
        self.conventions = conventions

    def fused(self, captured: Tensor) -> Tensor:
        if self.conventions["fc_norm"]:
            third = len(captured) // 3
            parts = [captured[k * third : (k + 1) * third] for k in range(3)]
            gains = [self.w[f"fc_norm.{k}.weight"] for k in range(3)]
            captured = torch.cat([rms(x, gain) for x, gain in zip(parts, gains, strict=True)])
        if self.conventions["input_norm"]:
            captured = rms(captured, self.w["input_norm.weight"])
        return self.w["fc.weight"] @ captured

    def entry(self, token: int, hidden: Tensor) -> Tensor:
        embedded = rms(self.embedding[token], self.w["layers.0.input_layernorm.weight"])
        return torch.cat([embedded, rms(hidden, self.w["layers.0.hidden_norm.weight"])])

    def head(self, projection: str, x: Tensor, index: int) -> Tensor:
        whole = self.w[f"layers.0.self_attn.{projection}_proj.weight"] @ x
        return whole[index * WIDTH : (index + 1) * WIDTH]

    def output(self, entries: list[tuple[Tensor, int]], hidden: Tensor) -> Tensor:
        """The layer's output for the last of `entries`, (input, position) pairs that it may see."""
        x, position = entries[-1]
        mixed = []
        for index in range(HEADS):
            shared = index // (HEADS // KV_HEADS)
            q = turned(self.head("q", x, index), position)
            scores = [q @ turned(self.head("k", e, shared), p) / WIDTH**0.5 for e, p in entries]
            shares = torch.softmax(torch.stack(scores), 0)
            values = [self.head("v", e, shared) for e, _ in entries]
            mixed.append(sum(s * v for s, v in zip(shares, values, strict=True)))
        normed = rms(hidden, self.w["layers.0.hidden_norm.weight"])
        residual = normed if self.conventions["residual"] else hidden
        h = residual + self.w["layers.0.self_attn.o_proj.weight"] @ torch.cat(mixed)
        y = rms(h, self.w["layers.0.post_attention_layernorm.weight"])
        gate = self.w["layers.0.mlp.gate_proj.weight"] @ y
        up = self.w["layers.0.mlp.up_proj.weight"] @ y
        return h + self.w["layers.0.mlp.down_proj.weight"] @ (gate * torch.sigmoid(gate) * up)

    def chain(self, ids: Tensor, captured: Tensor, slot: int) -> list[Tensor]:
        """Outputs of steps 0, 1, 2 at `slot`, fed with the ids that really follow."""
        entries = [
            (self.entry(int(ids[i + 1]), self.fused(captured[i])), i) for i in range(slot + 1)
        ]
        hidden, outputs = self.fused(captured[slot]), []
        for step in range(STEPS):
            if step:
                entries.append((self.entry(int(ids[slot + 1 + step]), hidden), slot + step))
            out = self.output(entries, hidden)
            outputs.append(out)
            post = self.conventions["feedback"] is Feedback.POST_NORM
            hidden = rms(out, self.w["norm.weight"]) if post else out
        return outputs

    def logits(self, output: Tensor) -> Tensor:
        return self.w["lm_head.weight"] @ rms(output, self.w["norm.weight"])


@pytest.fixture
def sequence() -> tuple[Tensor, Tensor, Tensor]:
    chance = torch.Generator().manual_seed(8)
    ids_T = torch.randint(0, 40, (LENGTH,), generator=chance)
    captured_TC = torch.randn(LENGTH, 36, generator=chance, dtype=torch.float64)
    final_TH = torch.randn(LENGTH, 12, generator=chance, dtype=torch.float64)
    return ids_T, captured_TC, final_TH


@pytest.mark.parametrize("conventions", CONVENTIONS, ids=str)
def test_a_chain_of_three_steps(
    make_drafter: Callable[..., Drafter],
    sequence: tuple[Tensor, Tensor, Tensor],
    conventions: dict[str, object],
) -> None:
    drafter = make_drafter(**conventions)
    ids_T, captured_TC, _ = sequence
    expected = Reference(drafter, conventions).chain(ids_T, captured_TC, slot=3)
    cache = drafter.new_cache(1, LENGTH)
    tokens, hidden = ids_T[None, 1:5], drafter.fuse(captured_TC[None, :4])
    for step in range(STEPS):
        output = drafter.step(tokens, hidden, cache)[:, -1:]
        torch.testing.assert_close(output[0, 0], expected[step], atol=1e-6, rtol=0)
        wanted = Reference(drafter, conventions).logits(expected[step])
        torch.testing.assert_close(drafter.logits(output)[0, 0], wanted, atol=1e-6, rtol=0)
        tokens, hidden = ids_T[None, 5 + step : 6 + step], drafter.feedback(output)


@pytest.mark.parametrize("conventions", CONVENTIONS, ids=str)
def test_every_slot_of_the_unrolling_is_such_a_chain(
    make_drafter: Callable[..., Drafter],
    sequence: tuple[Tensor, Tensor, Tensor],
    conventions: dict[str, object],
) -> None:
    drafter = make_drafter(**conventions)
    ids_T, captured_TC, _ = sequence
    outputs = list(unroll(drafter, ids_T[None], captured_TC[None], STEPS))
    for slot in range(LENGTH - STEPS):
        expected = Reference(drafter, conventions).chain(ids_T, captured_TC, slot)
        for step in range(STEPS):
            torch.testing.assert_close(outputs[step][0, slot], expected[step], atol=1e-6, rtol=0)


@pytest.mark.parametrize("layers", [1, 2])
def test_slots_left_out_change_nothing_behind_them(
    make_drafter: Callable[..., Drafter], sequence: tuple[Tensor, Tensor, Tensor], layers: int
) -> None:
    drafter = make_drafter(layers=layers)
    ids_T, captured_TC, _ = sequence
    whole = unroll(drafter, ids_T[None], captured_TC[None], STEPS)
    behind = unroll(drafter, ids_T[None], captured_TC[None], STEPS, first=3)
    for every, some in zip(whole, behind, strict=True):
        torch.testing.assert_close(some, every[:, 3:], atol=1e-12, rtol=0)


def test_loss_and_gradient(
    make_drafter: Callable[..., Drafter], sequence: tuple[Tensor, Tensor, Tensor]
) -> None:
    conventions = CONVENTIONS[0]
    drafter = make_drafter(**conventions)
    ids_T, captured_TC, final_TH = sequence
    chance = torch.Generator().manual_seed(9)
    teacher_head_VH = torch.randn(16, 12, generator=chance, dtype=torch.float64)
    # positions 3, 4 and 5 predict ids 4, 5 and 6; position 4 counts for less
    weight_T = torch.tensor([0.0, 0.0, 0.0, 1.0, 0.5, 1.0, 0.0])
    batch = Batch(
        ids_BT=ids_T[None],
        captured_BTC=captured_TC[None],
        final_BTH=final_TH[None],
        weight_BT=weight_T[None],
    )
    loss, scores = unrolled_loss(
        drafter, teacher_head_VH, batch, steps=STEPS, step_decay=0.8, dtype=torch.float64
    )
    torch.autograd.backward(loss)
    found = {name: p.grad.clone() for name, p in drafter.named_parameters() if p.grad is not None}
    drafter.zero_grad()

    reference = Reference(drafter, conventions)
    total = torch.zeros((), dtype=torch.float64)
    for step in range(STEPS):
        summed = torch.zeros((), dtype=torch.float64)
        for position in (3, 4, 5):
            slot = position - 1 - step
            q = torch.softmax(reference.logits(chain_of(reference, sequence, slot)[step]), 0)
            p = torch.softmax(teacher_head_VH @ final_TH[position], 0)
            summed = summed - weight_T[position] * (p * q.log()).sum()
        total = total + 0.8**step * summed / weight_T.sum()
        assert scores[step].loss == pytest.approx(float(summed.detach()) / 2.5, abs=1e-6)
    torch.autograd.backward(total)
    torch.testing.assert_close(loss.detach(), total.detach(), atol=1e-6, rtol=0)
    assert found.keys() == reference.w.keys()
    for name, parameter in reference.w.items():
        assert parameter.grad is not None
        torch.testing.assert_close(found[name], parameter.grad, atol=1e-6, rtol=1e-6)


def chain_of(
    reference: Reference, sequence: tuple[Tensor, Tensor, Tensor], slot: int
) -> list[Tensor]:
    """Positions past the end hold id 0 in the unrolling too."""
    ids_T, captured_TC, _ = sequence
    padded = torch.cat([ids_T, torch.zeros(STEPS, dtype=ids_T.dtype)])
    return reference.chain(padded, captured_TC, slot)
