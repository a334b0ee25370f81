"""The drafter, fact by fact, against `Naive`: formulas written out in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from tests.model.naive_drafter import Naive
from torch import Tensor

from eyas.model.drafter import Drafter
from eyas.spec import (
    Eagle3Spec,
    Feedback,
    Fused,
    LastState,
    LaterNorm,
    Mha,
    Mla,
    Ownership,
    Rope,
    VocabMap,
    declared,
)
from eyas.train.unroll import unroll

HIDDEN, WIDE, INNER, VOCAB, DRAFT_VOCAB = 12, 20, 16, 40, 15
EPS, THETA, STEPS, LENGTH = 1e-5, 50.0, 3, 8
TOLERANCE = 1e-9


def facts(**values: Any) -> dict[str, Any]:
    return {name: declared(value, "test") for name, value in values.items()}


GROUPED = Mha(**facts(num_heads=4, num_kv_heads=2, head_dim=6, bias=False, qk_norm=False))
LATENT = Mla(
    **facts(
        num_heads=3,
        q_lora_rank=7,
        kv_lora_rank=5,
        qk_nope_head_dim=4,
        qk_rope_head_dim=6,
        v_head_dim=3,
    )
)
FUSED = Fused(**facts(boundaries=(1, 2, 4), count=3, input_norm=False, fc_norm=False, bias=False))
LAST = LastState(**facts(reason="test", after_final_norm=True))
PLAIN = Eagle3Spec(
    attention=GROUPED,
    conditioning=FUSED,
    **facts(
        hidden_size=HIDDEN,
        target_hidden_size=HIDDEN,
        intermediate_size=INNER,
        num_layers=1,
        later_norm=None,
        activation="silu",
        rms_norm_eps=EPS,
        rope=Rope(theta=THETA, kind="default"),
        max_position_embeddings=64,
        norm_before_residual=False,
        feedback=Feedback.PRE_NORM,
        vocab_size=VOCAB,
        draft_vocab_size=DRAFT_VOCAB,
        vocab_map=VocabMap.OFFSETS,
        embedding=Ownership.TARGET,
        head=Ownership.OWN,
        target_name="tiny",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a case has other than `PLAIN`."""

    attention: Mha | Mla = GROUPED
    conditioning: Fused | LastState = FUSED
    top: dict[str, Any] = field(default_factory=dict)

    def spec(self) -> Eagle3Spec:
        return replace(
            PLAIN, attention=self.attention, conditioning=self.conditioning, **facts(**self.top)
        )


def fused(**values: Any) -> Fused:
    return replace(FUSED, **facts(**values))


def grouped(**values: Any) -> Mha:
    return replace(GROUPED, **facts(**values))


def rope(kind: str, **scaling: float) -> dict[str, Any]:
    return {"rope": Rope(theta=THETA, kind=kind, scaling=scaling)}


LLAMA3 = {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0}
LLAMA3 |= {"original_max_position_embeddings": 24}
YARN = {"factor": 8.0, "original_max_position_embeddings": 24, "beta_fast": 3.0}
THREE = {"num_layers": 3, "norm_before_residual": True}
POST = {"feedback": Feedback.POST_NORM}
OWN_ALL = {"target_hidden_size": WIDE, "embedding": Ownership.OWN}
CASES = {
    "plain": Change(),
    "residual normed": Change(top={"norm_before_residual": True}),
    "feedback normed": Change(top=POST),
    "fc with bias": Change(conditioning=fused(bias=True)),
    "one boundary": Change(conditioning=fused(count=1, boundaries=(3,))),
    "five boundaries": Change(conditioning=fused(count=5, boundaries=(0, 1, 2, 3, 4))),
    "input_norm": Change(conditioning=fused(input_norm=True)),
    "fc_norm": Change(conditioning=fused(fc_norm=True)),
    "both norms before fc": Change(conditioning=fused(fc_norm=True, input_norm=True)),
    "last state": Change(conditioning=LAST),
    "bias on q, k, v": Change(attention=grouped(bias=True)),
    "norms on q and k": Change(attention=grouped(qk_norm=True), top=POST),
    "one key head": Change(attention=grouped(num_kv_heads=1)),
    "two layers": Change(top={"num_layers": 2, "later_norm": LaterNorm.INPUT_LAYERNORM}),
    "three layers of SGLang": Change(top={**THREE, "later_norm": LaterNorm.HIDDEN_NORM}),
    "another activation": Change(top={"activation": "gelu"}),
    "linear rope": Change(top=rope("linear", factor=4.0)),
    "llama3 rope": Change(top=rope("llama3", **LLAMA3)),
    "yarn rope": Change(top=rope("yarn", **YARN)),
    "yarn rope, given amplitude": Change(top=rope("yarn", attention_factor=1.3, **YARN)),
    "yarn rope, not truncated": Change(top=rope("yarn", truncate=False, **YARN)),
    "own embedding, wide target": Change(top=OWN_ALL),
    "tied head": Change(top={"embedding": Ownership.OWN, "head": Ownership.TIED}),
    "target's head": Change(top={"head": Ownership.TARGET, "vocab_map": VocabMap.PREFIX}),
    "latent attention": Change(attention=LATENT),
    "latent, every flag": Change(
        attention=LATENT,
        conditioning=fused(fc_norm=True),
        top={**POST, **THREE, "later_norm": LaterNorm.INPUT_LAYERNORM},
    ),
    "latent, yarn": Change(
        attention=LATENT, top=rope("yarn", mscale=1.0, mscale_all_dim=0.7, **YARN)
    ),
}


def random_drafter(spec: Eagle3Spec, seed: int = 3) -> Drafter:
    chance = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=chance, dtype=torch.float64)

    wide = spec.target_hidden_size.value
    drafter = Drafter(spec, embedding=random(VOCAB, wide), head=random(VOCAB, wide)).double()
    with torch.no_grad():
        for parameter in drafter.parameters():
            scale = 1.2 * parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 1.0
            parameter.copy_(scale * random(*parameter.shape))
    return drafter


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
