"""Examples of similar length padded into batches, in an order that a seed fixes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eyas.data.states import StateStore

POOL = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Padded examples; `weight_BT` says how much position j's prediction of x_{j+1} counts."""

    ids_BT: Tensor
    captured_BTC: Tensor
    final_BTH: Tensor
    weight_BT: Tensor


def split_held_out(count: int, every: int) -> tuple[list[int], list[int]]:
    """(training indices, held-out indices): every `every`-th example is held out."""
    held_out = list(range(every - 1, count, every))
    return [index for index in range(count) if index % every != every - 1], held_out


def batch_plan(
    store: StateStore, indices: Sequence[int], *, tokens: int, max_length: int, seed: str
) -> list[list[int]]:
    """Batches of example indices, each at most `tokens` positions after padding."""
    chance = random.Random(seed)
    order = list(indices)
    chance.shuffle(order)
    plan: list[list[int]] = []
    for begin in range(0, len(order), POOL):
        pool = sorted(order[begin : begin + POOL], key=store.length, reverse=True)
        while pool:
            longest = min(store.length(pool[0]), max_length)
            rows = max(1, tokens // longest)
            plan.append(pool[:rows])
            pool = pool[rows:]
    chance.shuffle(plan)
    return plan


def make_batch(
    store: StateStore,
    indices: Sequence[int],
    captured_scale_C: Tensor,
    *,
    max_length: int,
    prompt_weight: float,
    device: torch.device,
) -> Batch:
    """The examples padded on the right; an answer's tokens count 1, a prompt's `prompt_weight`.

    The batch is on `device`; captured channels are multiplied by `captured_scale_C`.
    """
    examples = [store[index] for index in indices]
    length = min(max(example.length for example in examples), max_length)
    first = examples[0]
    shape = (len(examples), length)
    ids = torch.zeros(shape, dtype=torch.int64)
    captured = first.captured_TC.new_zeros(*shape, first.captured_TC.shape[1])
    final = first.final_TH.new_zeros(*shape, first.final_TH.shape[1])
    weight = torch.zeros(shape)
    for row, example in enumerate(examples):
        held = min(example.length, length)
        ids[row, :held] = example.ids_T[:held]
        captured[row, :held] = example.captured_TC[:held]
        final[row, :held] = example.final_TH[:held]
        # the last position is left out: after an end-of-text id nothing is drafted
        weight[row, 1 : held - 1] = prompt_weight
        weight[row, max(example.prompt_length - 1, 1) : held - 1] = 1.0
    return Batch(
        ids_BT=ids.to(device),
        captured_BTC=captured.to(device) * captured_scale_C.to(device, captured.dtype),
        final_BTH=final.to(device),
        weight_BT=weight.to(device),
    )


def channel_rms(store: StateStore, indices: Sequence[int]) -> Tensor:
    """Root mean square of every captured channel, [C].

    First positions are left out: as attention sinks they are hundreds of times larger, and would
    hide what the channels of all other positions are like.
    """
    total, count = torch.zeros(()), 0
    for index in indices:
        captured_TC = store[index].captured_TC[1:].float()
        total = total + captured_TC.square().sum(0)
        count += len(captured_TC)
    return (total / max(count, 1)).sqrt().clamp_min(1e-6)
