"""Rotary tables against transformers' own ROPE_INIT_FUNCTIONS and its latent attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.model.drafter_cases import LATENT, Change
from torch import Tensor, nn
from transformers import DeepseekV3Config, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.deepseek_v3.modeling_deepseek_v3 import (
    DeepseekV3Attention,
    DeepseekV3RotaryEmbedding,
)

from eyas.errors import UnsupportedError
from eyas.model.draft_attention import LatentAttention
from eyas.model.draft_shape import DraftShape, LatentShape
from eyas.model.rope import RopeTable
from eyas.model.rope_scaling import scaled_frequencies
from eyas.spec import Rope

YARN = {"factor": 32.0, "original_max_position_embeddings": 4096}
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("linear", {"factor": 4.0}),
    (
        "llama3",
        {
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    ),
    ("yarn", YARN),
    ("yarn", {**YARN, "beta_fast": 16, "beta_slow": 2}),
    ("yarn", {**YARN, "truncate": False}),
    ("yarn", {**YARN, "attention_factor": 1.5}),
    ("yarn", {**YARN, "mscale": 1.0, "mscale_all_dim": 0.8}),
    ("yarn", {**YARN, "mscale": 1.0}),
    ("yarn", {"factor": 4.0}),  # the original length is then max_position_embeddings
]


@pytest.mark.parametrize(("kind", "scaling"), KINDS)
def test_frequencies_equal_those_of_transformers(kind: str, scaling: dict[str, Any]) -> None:
    config = LlamaConfig(
        hidden_size=256,
        num_attention_heads=2,
        head_dim=128,
        max_position_embeddings=2048,
        rope_parameters={"rope_type": kind, "rope_theta": 50000.0, **scaling},
    )
    wanted, amplitude = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"))
    found = scaled_frequencies(Rope(theta=50000.0, kind=kind, scaling=scaling), 128, 2048)
    torch.testing.assert_close(found.angles.float(), wanted, rtol=2e-6, atol=0)
    assert found.amplitude == pytest.approx(amplitude, rel=1e-12)


def test_a_table_holds_the_scaled_angles() -> None:
    kind, scaling = KINDS[6]
    rope = Rope(theta=50000.0, kind=kind, scaling=scaling)
    scaled = scaled_frequencies(rope, 16, None)
    table = RopeTable(rope, head_dim=16, device=torch.device("cpu"))
    cos, sin = table.at(torch.tensor([[0, 3, 700]]), torch.float64)
    angles = torch.tensor([[0.0, 3.0, 700.0]])[..., None].double() * scaled.angles
    half = angles.shape[-1]
    for part in (slice(None, half), slice(half, None)):
        torch.testing.assert_close(cos[..., part], angles.cos() * scaled.amplitude)
        torch.testing.assert_close(sin[..., part], angles.sin() * scaled.amplitude)


@pytest.mark.parametrize(
    ("rope", "said"),
    [
        (Rope(theta=1e4, kind="dynamic", scaling={"factor": 2.0}), "`dynamic`"),
        (Rope(theta=1e4, kind="longrope"), "`longrope`"),
        (Rope(theta=1e4, kind="linear"), "needs a `factor`"),
        (Rope(theta=1e4, kind="llama3", scaling={"factor": 8.0}), "original_max_position"),
        (Rope(theta=1e4, kind="yarn", scaling={"factor": "8"}), "`factor` is '8'"),
        (Rope(theta=1.0, kind="default"), "base of 1.0"),
        (Rope(theta=1e4, kind="default", scaling={"partial_rotary_factor": 0.5}), "part of each"),
    ],
    ids=str,
)
def test_what_cannot_be_computed_is_refused_by_name(rope: Rope, said: str) -> None:
    with pytest.raises(UnsupportedError) as refused:
        scaled_frequencies(rope, 16, None)
    assert said in refused.value.message


@pytest.mark.parametrize("mscale", [{}, {"mscale": 1.0, "mscale_all_dim": 1.0}], ids=str)
@torch.inference_mode()
def test_latent_attention_equals_that_of_deepseek_v3(mscale: dict[str, float]) -> None:
    """transformers' class over inputs of 2H, its output projection replaced by one onto H."""
    scaling = {"factor": 8.0, "original_max_position_embeddings": 16, **mscale}
    rope = Rope(theta=100.0, kind="yarn", scaling=scaling)
    top = {"rope": rope, "rms_norm_eps": 1e-6}  # the one epsilon that its latent norms know
    shape, width = DraftShape.of(Change(attention=LATENT, top=top).spec()), 24
    sizes = shape.attention
    assert isinstance(sizes, LatentShape)
    ours = LatentAttention(sizes, shape, width)
    config = DeepseekV3Config(
        hidden_size=width,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.heads,
        q_lora_rank=sizes.query_rank,
        kv_lora_rank=sizes.key_value_rank,
        qk_nope_head_dim=sizes.nope,
        qk_rope_head_dim=sizes.rope,
        v_head_dim=sizes.value,
        rms_norm_eps=1e-6,
        max_position_embeddings=128,
        rope_parameters={"rope_type": "yarn", "rope_theta": 100.0, **scaling},
        attn_implementation="eager",
    )
    theirs = DeepseekV3Attention(config, layer_idx=0).eval()
    theirs.o_proj = nn.Linear(sizes.heads * sizes.value, shape.hidden, bias=False)
    random = torch.Generator().manual_seed(0)
    for weight in ours.parameters():
        weight.copy_(torch.randn(weight.shape, generator=random) * 0.5)
    theirs.load_state_dict(ours.state_dict(), strict=True)

    x = torch.randn(1, 7, width, generator=random)
    positions = torch.arange(7)[None]
    later = torch.full((7, 7), -torch.inf).triu(1)[None, None]
    wanted = theirs(x, DeepseekV3RotaryEmbedding(config)(x, positions), attention_mask=later)[0]

    tables = RopeTable(shape.rope, head_dim=ours.rotated, device=x.device).at(positions, x.dtype)
    q, k, v = ours.project(x, *tables)
    mixed: Tensor = ((q @ k.transpose(-1, -2)) * ours.scale + later).softmax(-1) @ v
    found = ours.o_proj(mixed.transpose(1, 2).flatten(2))
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
