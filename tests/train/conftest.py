"""A tiny drafter in float64 for a tiny target, in every combination of its conventions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from eyas.model.drafter import Drafter
from eyas.spec import (
    Eagle3Spec,
    Feedback,
    Fused,
    LaterNorm,
    Mha,
    Ownership,
    Rope,
    VocabMap,
    VocabOrder,
    absent,
    declared,
)

HIDDEN, VOCAB, DRAFT_VOCAB, CAPTURED = 12, 40, 16, 3
HERE = "test"


def spec_of(
    *, residual: bool, feedback: Feedback, fc_norm: bool, input_norm: bool, layers: int
) -> Eagle3Spec:
    return Eagle3Spec(
        hidden_size=declared(HIDDEN, HERE),
        target_hidden_size=declared(HIDDEN, HERE),
        intermediate_size=declared(20, HERE),
        num_layers=declared(layers, HERE),
        later_norm=declared(LaterNorm.INPUT_LAYERNORM, HERE) if layers > 1 else absent(HERE),
        attention=Mha(
            num_heads=declared(4, HERE),
            num_kv_heads=declared(2, HERE),
            head_dim=declared(6, HERE),
            bias=declared(False, HERE),
            qk_norm=declared(False, HERE),
        ),
        conditioning=Fused(
            boundaries=declared((1, 2, 4), HERE),
            count=declared(CAPTURED, HERE),
            input_norm=declared(input_norm, HERE),
            fc_norm=declared(fc_norm, HERE),
            bias=declared(False, HERE),
        ),
        activation=declared("silu", HERE),
        rms_norm_eps=declared(1e-5, HERE),
        rope=declared(Rope(theta=100.0, kind="default"), HERE),
        max_position_embeddings=declared(64, HERE),
        norm_before_residual=declared(residual, HERE),
        feedback=declared(feedback, HERE),
        vocab_size=declared(VOCAB, HERE),
        draft_vocab_size=declared(DRAFT_VOCAB, HERE),
        vocab_map=declared(VocabMap.OFFSETS, HERE),
        vocab_order=declared(VocabOrder.SORTED, HERE),
        embedding=declared(Ownership.TARGET, HERE),
        head=declared(Ownership.OWN, HERE),
        target_name=declared("tiny", HERE),
    )


@pytest.fixture
def make_drafter() -> Callable[..., Drafter]:
    """``make(residual=, feedback=, …, layers=, dtype=)``: random weights, fixed seed."""

    def make(
        *,
        residual: bool = False,
        feedback: Feedback = Feedback.PRE_NORM,
        fc_norm: bool = False,
        input_norm: bool = False,
        layers: int = 1,
        dtype: torch.dtype = torch.float64,
    ) -> Drafter:
        chance = torch.Generator().manual_seed(3)

        def random(*shape: int) -> Tensor:
            return torch.randn(shape, generator=chance, dtype=torch.float64)

        spec = spec_of(
            residual=residual,
            feedback=feedback,
            fc_norm=fc_norm,
            input_norm=input_norm,
            layers=layers,
        )
        embedding, head = random(VOCAB, HIDDEN), random(VOCAB, HIDDEN)
        drafter = Drafter(spec, embedding=embedding.to(dtype), head=head.to(dtype)).to(dtype)
        with torch.no_grad():
            for parameter in drafter.parameters():
                scale = 0.4 if parameter.ndim > 1 else 1.0
                parameter.copy_(scale * random(*parameter.shape))
            drafter.d2t.copy_(torch.arange(DRAFT_VOCAB))  # draft id i is target id 2i
        return drafter

    return make
