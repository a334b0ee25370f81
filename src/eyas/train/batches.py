"""Examples of similar length padded into batches, in an order that a seed fixes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eyas.data.states import StateStore

POOL = 128
STEP = 64


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """How much a position's prediction counts: 1 in an answer, `prompt_weight` in its prompt.

    Of a prompt only the last `prompt_reach` positions count; those before them are read, and
    cost little. Positions from `max_length` on are cut off.
    """

    max_length: int
    prompt_weight: float
    prompt_reach: int

    def span(self, length: int, prompt_length: int) -> tuple[int, int]:
        """(first, end) of the positions that count.

        Position 0 does not, for nothing drafts it; the last does not, for after an end-of-text id
        nothing is drafted.
        """
        reach = self.prompt_reach if self.prompt_weight else 0
        end = min(length, self.max_length) - 1
        return min(max(prompt_length - 1 - reach, 1), end), end


def batch_plan(
    store: StateStore, indices: Sequence[int], weighing: Weighing, *, tokens: int, seed: str
) -> list[list[int]]:
    """Batches of example indices, alike in where they begin to count and in length.

    Examples in which nothing counts are left out.
    A batch runs from the first position that counts in any of its examples to the end of the
    longest, and is at most `tokens` such positions large after padding.
    """
    chance = random.Random(seed)
    spans = {i: weighing.span(store.length(i), store.prompt_length(i)) for i in indices}
    order = [index for index in indices if spans[index][0] < spans[index][1]]
    chance.shuffle(order)
    plan: list[list[int]] = []
    for begin in range(0, len(order), POOL):
        # by where they begin, in steps, and within a step by their length
        pool = sorted(order[begin : begin + POOL], key=lambda i: (spans[i][0] // STEP, spans[i][1]))
        batch = [pool[0]]
        for index in pool[1:]:
            grown = [*batch, index]
            width = max(spans[i][1] for i in grown) - min(spans[i][0] for i in grown)
            if len(grown) * width > tokens:
                plan.append(batch)
                grown = [index]
            batch = grown
        plan.append(batch)
    chance.shuffle(plan)
    return plan


def make_batch(
    store: StateStore,
    indices: Sequence[int],
    captured_scale_C: Tensor,
    weighing: Weighing,
    *,
    device: torch.device,
) -> Batch:
    """The examples padded on the right and weighed.

    The batch is on `device`; captured channels are multiplied by `captured_scale_C`.
    """
    examples = [store[index] for index in indices]
    length = min(max(example.length for example in examples), weighing.max_length)
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
        begin, end = weighing.span(example.length, example.prompt_length)
        weight[row, begin:end] = weighing.prompt_weight
        weight[row, max(example.prompt_length - 1, 1) : end] = 1.0
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
