"""RoPE through GGUF keys: llama.cpp's arithmetic against ours, and each read back the same."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from eyas.checkpoint import Checkpoint, TensorBytes, open_checkpoint
from eyas.checkpoint.gguf_rope import FACTORS, OWN, own_keys, read_rope, stored_rope
from eyas.checkpoint.gguf_write import write_gguf
from eyas.errors import CheckpointError, ConversionError
from eyas.model.rope_scaling import scaled_frequencies
from eyas.spec import Rope

DIM, POSITIONS = 64, 4096
LLAMA3 = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
YARN = {"factor": 32.0, "original_max_position_embeddings": 2048}
ROPES = [
    Rope(theta=10000.0, kind="default"),
    Rope(theta=1e5 / 3, kind="default"),  # float32 has a neighbour of it
    Rope(theta=500000.0, kind="default", scaling={"partial_rotary_factor": 1.0}),
    Rope(theta=10000.0, kind="linear", scaling={"factor": 4.0}),
    Rope(theta=500000.0, kind="llama3", scaling=LLAMA3),
    Rope(
        theta=500000.0, kind="llama3", scaling={k: v for k, v in LLAMA3.items() if "max" not in k}
    ),
    Rope(theta=10000.0, kind="yarn", scaling=YARN),
    Rope(theta=1e6, kind="yarn", scaling={"factor": 4.0}),
    Rope(theta=1e6, kind="yarn", scaling=YARN | {"attention_factor": 1.0, "mscale": None}),
    Rope(theta=1e6, kind="yarn", scaling=YARN | {"mscale": 0.7, "mscale_all_dim": 0.3}),
    Rope(
        theta=1e6, kind="yarn", scaling=YARN | {"beta_fast": 32, "beta_slow": 1, "truncate": True}
    ),
]


def computed_by_llamacpp(
    keys: dict[str, Any], factors: tuple[float, ...] | None
) -> tuple[list[float], float]:
    """Angles and amplitude by llama.cpp's own steps (0c1e57098), in float64.

    src/llama-model.cpp:1409-1432, src/llama-context.cpp:134-214, ggml/src/ggml.c:4478-4490,
    ggml/src/ggml-cpu/ops.cpp:6180-6218.
    """
    base = keys["rope.freq_base"]
    scale = 1.0 / keys["rope.scaling.factor"] if "rope.scaling.factor" in keys else 1.0
    extrapolates = keys.get("rope.scaling.type", "linear") == "yarn"
    attention = 1.0
    if extrapolates:
        factor = 1.0 / scale
        louder = 1.0 if factor <= 1.0 else 0.1 * math.log(factor) + 1.0
        attention = louder / (1.0 + 0.1 * math.log(factor))
    attention *= keys.get("rope.scaling.attn_factor", 1.0)
    original = keys.get("rope.scaling.original_context_length", POSITIONS)

    def correction(turns: float) -> float:
        return DIM * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    start, end = math.floor(correction(32.0)), math.ceil(correction(1.0))
    start, end = max(0, start), min(DIM - 1, end)
    angles = []
    for pair in range(DIM // 2):
        extrapolated = base ** (-2.0 * pair / DIM) / (factors[pair] if factors else 1.0)
        interpolated = scale * extrapolated
        mix = 0.0
        if extrapolates:
            mix = 1.0 - min(1.0, max(0.0, (pair - start) / max(0.001, end - start)))
        angles.append(interpolated * (1 - mix) + extrapolated * mix)
    mscale = attention * (1.0 + 0.1 * math.log(1.0 / scale)) if extrapolates else attention
    return angles, mscale


@pytest.mark.parametrize("rope", ROPES)
def test_llamacpp_computes_from_the_keys_what_was_trained(rope: Rope) -> None:
    stored = stored_rope(rope, head_dim=DIM, max_positions=POSITIONS)
    trained = scaled_frequencies(rope, DIM, POSITIONS)

    angles, amplitude = computed_by_llamacpp(dict(stored.keys), stored.factors)

    torch.testing.assert_close(
        torch.tensor(angles, dtype=torch.float64), trained.angles, rtol=1e-12, atol=0.0
    )
    assert amplitude == pytest.approx(trained.amplitude, rel=1e-12)


def write(path: Path, rope: Rope, **changes: Any) -> Checkpoint:
    stored = stored_rope(rope, head_dim=DIM, max_positions=POSITIONS)
    keys: dict[str, Any] = {"general.architecture": "eagle3"} | own_keys(rope, stored)
    keys |= {f"eagle3.{key}": value for key, value in stored.keys.items()} | changes
    tensors = {}
    if stored.factors is not None:
        raw = struct.pack(f"<{DIM // 2}f", *stored.factors)
        tensors[FACTORS] = TensorBytes(dtype="F32", shape=(DIM // 2,), data=raw)
    write_gguf(path, {k: v for k, v in keys.items() if v is not None}, tensors)
    return open_checkpoint(path)


def read(checkpoint: Checkpoint) -> Rope:
    return read_rope(checkpoint, "eagle3.", head_dim=DIM, max_positions=POSITIONS)


@pytest.mark.parametrize("rope", ROPES)
def test_every_rope_is_read_back_the_same(tmp_path: Path, rope: Rope) -> None:
    assert read(write(tmp_path / "d.gguf", rope)) == rope


def test_what_the_keys_spell_out_is_stated_once() -> None:
    for rope in (ROPES[0], ROPES[3], ROPES[6]):
        assert own_keys(rope, stored_rope(rope, head_dim=DIM, max_positions=POSITIONS)) == {}


def test_factors_alone_stay_a_tensor(tmp_path: Path) -> None:
    rope = read(write(tmp_path / "d.gguf", ROPES[4], **{OWN: None}))
    assert rope == Rope(theta=500000.0, kind="llama3", scaling={"factors": FACTORS})


@pytest.mark.parametrize(
    ("rope", "changes"),
    [
        (ROPES[4], {"eagle3.rope.freq_base": 10000.0}),
        (ROPES[4], {"eagle3.rope.scaling.factor": 2.0}),
        (ROPES[4], {OWN: '{"rope_theta": 500000.0, "rope_type": "llama3", "factor": 2.0}'}),
        (ROPES[8], {"eagle3.rope.scaling.original_context_length": 4096}),
        (ROPES[8], {"eagle3.rope.scaling.attn_factor": 1.5}),
    ],
)
def test_our_own_key_counts_only_where_the_others_agree(
    tmp_path: Path, rope: Rope, changes: dict[str, Any]
) -> None:
    assert OWN in write(tmp_path / "d.gguf", rope).config
    assert read(write(tmp_path / "e.gguf", rope, **changes)) != rope


def test_other_factors_than_the_numbers_give_win(tmp_path: Path) -> None:
    checkpoint = write(tmp_path / "d.gguf", ROPES[4])
    path, start = tmp_path / "d.gguf", checkpoint.tensors[FACTORS].start
    raw = bytearray(path.read_bytes())
    raw[start + 120 : start + 124] = struct.pack("<f", 7.99)
    path.write_bytes(bytes(raw))
    assert read(open_checkpoint(path)).scaling == {"factors": FACTORS}


@pytest.mark.parametrize(
    ("kind", "scaling", "reason"),
    [
        ("dynamic", {"factor": 2.0}, "the kind `dynamic`"),
        ("longrope", {"short_factor": [1.0]}, "the kind `longrope`"),
        ("default", {"mrope_section": [8, 12, 12]}, "`default` with `mrope_section`"),
        ("default", {"partial_rotary_factor": 0.5}, "a part of each head"),
        ("linear", {}, "`linear` without a `factor` above 0"),
        ("llama3", LLAMA3 | {"high_freq_factor": 1.0}, "not above the low one"),
        ("llama3", LLAMA3 | {"factor": "8"}, "`factor` '8'"),
        ("yarn", YARN | {"beta_fast": 16}, "beta_fast 16 and beta_slow 1"),
        ("yarn", YARN | {"truncate": False}, "ends between two channels"),
        ("yarn", YARN | {"factor": 0.5}, "a factor below 1"),
        ("yarn", YARN | {"mscale": 1, "mscale_all_dim": -7.2}, "`mscale_all_dim` -7.2"),
        ("linear", {"factor": 1e300}, "`factor` 1e+300"),
        ("yarn", YARN | {"original_max_position_embeddings": 1}, "less than one turn"),
    ],
)
def test_a_rope_that_llamacpp_does_not_compute_is_refused(
    kind: str, scaling: dict[str, Any], reason: str
) -> None:
    rope = Rope(theta=10000.0, kind=kind, scaling=scaling)
    with pytest.raises(ConversionError) as refused:
        stored_rope(rope, head_dim=DIM, max_positions=POSITIONS)
    assert reason in refused.value.message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (OWN, 7),
        (OWN, "{"),
        (OWN, '{"rope_type": "yarn"}'),
        ("eagle3.rope.scaling.type", 3),
        ("eagle3.rope.scaling.factor", "much"),
    ],
)
def test_a_key_of_another_type_is_one_sentence(tmp_path: Path, key: str, value: Any) -> None:
    checkpoint = write(tmp_path / "d.gguf", ROPES[0], **{key: value})
    with pytest.raises(CheckpointError, match=key.replace(".", r"\.")):
        read(checkpoint)
