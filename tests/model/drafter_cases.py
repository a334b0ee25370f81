"""Tiny drafters that between them have every fact that an Eagle3Spec can hold."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
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
    VocabOrder,
    declared,
)

HIDDEN, WIDE, INNER, VOCAB, DRAFT_VOCAB = 12, 20, 16, 40, 15
EPS, THETA = 1e-5, 50.0


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
        vocab_order=VocabOrder.SORTED,
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
