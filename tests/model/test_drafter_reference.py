"""The drafter, fact by fact, against `Naive`: formulas written out in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from tests.model.drafter_cases import CASES, VOCAB, random_drafter
from tests.model.naive_drafter import Naive
from torch import Tensor

from eyas.model.drafter import Drafter
from eyas.spec import Fused
from eyas.train.unroll import unroll

STEPS, LENGTH, TOLERANCE = 3, 8, 1e-9


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A drafter, its formulas, and inputs of two sequences."""

    drafter: Drafter
    naive: Callable[[], Naive]
    ids_BT: Tensor
    captured_BTC: Tensor

    def expected(self, row: int, slot: int) -> list[Tensor]:
        """Outputs of a chain of `STEPS` steps from `slot`, fed with the ids that follow."""
        naive, ids = self.naive(), self.ids_BT[row].tolist()
        for i in range(slot + 1):
            output = naive.append(ids[i + 1], naive.fuse(self.captured_BTC[row, i]))
        outputs = [output]
        for step in range(1, STEPS):
            outputs.append(naive.append(ids[slot + 1 + step], naive.feedback(outputs[-1])))
        return outputs


@pytest.fixture(params=CASES)
def scene(request: pytest.FixtureRequest) -> Scene:
    spec = CASES[request.param].spec()
    drafter = random_drafter(spec)
    chance = torch.Generator().manual_seed(8)
    width = spec.target_hidden_size.value
    if isinstance(spec.conditioning, Fused):
        width *= spec.conditioning.count.value
    embedding, head = drafter._shared
    return Scene(
        drafter=drafter,
        naive=lambda: Naive(drafter, embedding, head),
        ids_BT=torch.randint(0, VOCAB, (2, LENGTH), generator=chance),
        captured_BTC=torch.randn(2, LENGTH, width, generator=chance, dtype=torch.float64),
    )


@torch.inference_mode()
def test_a_chain_equals_the_formulas(scene: Scene, measured: Callable[[str], None]) -> None:
    """Five pairs in two calls, then two steps of feedback, after slots that were rolled back."""
    drafter, ids, slot = scene.drafter, scene.ids_BT, 4
    expected = [scene.expected(row, slot) for row in range(2)]
    naive = scene.naive()
    hidden = drafter.fuse(scene.captured_BTC[:, : slot + 1])
    cache = drafter.new_cache(2, slot + STEPS)
    drafter.step(ids[:, 1 : slot + 1], hidden[:, :slot], cache)
    drafter.step(ids[:, 1:2], hidden[:, :1], cache)
    cache.rollback(2)
    output = drafter.step(ids[:, 3 : slot + 2], hidden[:, 2:], cache)[:, -1:]
    worst = 0.0
    for step in range(STEPS):
        for row in range(2):
            wanted = expected[row][step]
            worst = max(worst, gap(output[row, 0], wanted))
            worst = max(worst, gap(drafter.logits(output)[row, 0], naive.logits(wanted)))
        if step + 1 < STEPS:
            tokens = ids[:, slot + 2 + step : slot + 3 + step]
            output = drafter.step(tokens, drafter.feedback(output), cache)
    measured(f"the largest difference from the formulas is {worst:.0e}")
    assert worst <= TOLERANCE


@torch.inference_mode()
def test_the_unrolling_equals_the_formulas(scene: Scene) -> None:
    outputs = list(unroll(scene.drafter, scene.ids_BT, scene.captured_BTC, STEPS))
    for slot in (0, 2, LENGTH - 1 - STEPS):
        for step, wanted in enumerate(scene.expected(1, slot)):
            assert gap(outputs[step][1, slot], wanted) <= TOLERANCE


def gap(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max())
