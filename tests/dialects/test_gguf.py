"""Writing llama.cpp's eagle3: every fact read back, every fact that it lacks refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.dialects.flat_drafter import D2T, FLAT, shapes

from eyas import dialects
from eyas.checkpoint import Checkpoint, open_checkpoint
from eyas.checkpoint.gguf import GgufValue
from eyas.checkpoint.gguf_write import write_gguf
from eyas.checkpoint.rows import Made, Rows, StoredRows, blocks, tensor_bytes
from eyas.dialects import gguf
from eyas.dialects.contents import contents
from eyas.dialects.gguf_rows import made, offsets, stored
from eyas.errors import CheckpointError, ConversionError
from eyas.spec import (
    DefaultBoundaries,
    Eagle3Spec,
    Fact,
    Feedback,
    Fused,
    LastState,
    Ownership,
    Rope,
    VocabMap,
    absent,
    declared,
)

IDS = {"eagle_aux_hidden_state_layer_ids": [2, 6, 9]}
BASE = {**FLAT, **IDS, "max_position_embeddings": 512}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "plain": ({}, {}),
    "residual normed": ({"norm_before_residual": True}, {}),
    "norm before fc": ({"norm_before_fc": True}, {"input_norm.weight": (24,)}),
    "own embedding": ({}, {"embed_tokens.weight": (20, 8)}),
    "narrow": (
        {"target_hidden_size": 16},
        {"fc.weight": (8, 48), "embed_tokens.weight": (20, 8)},
    ),
    "llama3": ({"rope_scaling": LLAMA3}, {}),
    "yarn": ({"rope_scaling": {"type": "yarn", "factor": 4.0, "attention_factor": 1.25}}, {}),
    "another epsilon": ({"rms_norm_eps": 1e-6}, {}),
    "another order": ({"eagle_aux_hidden_state_layer_ids": [9, 2, 6]}, {}),
}
TOKENIZER = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": GgufValue(value=[f"t{i}" for i in range(20)], kind=9, of=8),
    "tokenizer.ggml.merges": GgufValue(value=["t 1"], kind=9, of=8),
}


Build = Callable[..., Checkpoint]


def flat(
    build: Build, config: dict[str, Any], more: dict[str, tuple[int, ...]]
) -> tuple[Checkpoint, Eagle3Spec, dict[str, str]]:
    checkpoint = build({**BASE, **config}, shapes() | more, d2t=D2T)
    dialect, spec = dialects.read(checkpoint)
    assert isinstance(spec, Eagle3Spec)
    return checkpoint, spec, dict(dialect.roles(checkpoint))


def write(path: Path, spec: Eagle3Spec, parts: dict[str, Rows]) -> Checkpoint:
    keys, names = gguf.write(spec, tuple(parts), dtype="bfloat16")
    rows = {names[role]: stored(spec, role, part) for role, part in parts.items() if role in names}
    tensors = {name: tensor_bytes(row) for name, row in (rows | made(spec)).items()}
    write_gguf(path, keys | TOKENIZER, tensors)
    return open_checkpoint(path)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_fact_is_read_back(build: Build, kit: Any, tmp_path: Path, variant: str) -> None:
    checkpoint, spec, roles = flat(build, *VARIANTS[variant])
    parts: dict[str, Rows] = {role: StoredRows(checkpoint, name) for name, role in roles.items()}

    written = write(tmp_path / "d.gguf", spec, parts)

    dialect, again = dialects.read(written)
    assert dialect.name == "gguf"
    expected = kit.values(spec) | {"vocab_map": VocabMap.ABSOLUTE}
    assert kit.values(again) == expected
    assert set(dialect.roles(written).values()) == set(roles.values())


@pytest.mark.parametrize("variant", VARIANTS)
def test_llamacpp_is_held_to_compute_it(
    build: Build, kit: Any, tmp_path: Path, variant: str
) -> None:
    from eyas.engines import EngineRef, Launch, read
    from eyas.spec import Served

    checkpoint, spec, roles = flat(build, *VARIANTS[variant])
    parts: dict[str, Rows] = {role: StoredRows(checkpoint, name) for name, role in roles.items()}
    written = write(tmp_path / "d.gguf", spec, parts)

    served = read(EngineRef.parse("llamacpp@11549"), written, target=None, launch=Launch())

    assert isinstance(served, Served)
    assert served.refusal is None
    assert served.landing is not None
    assert served.landing.lost == served.landing.unfilled == ()
    expected = kit.values(spec) | {"vocab_map": VocabMap.ABSOLUTE, "vocab_order": None}
    assert kit.values(served.spec) == expected


def numbers(rows: Rows) -> np.ndarray:
    return np.frombuffer(b"".join(blocks(rows)), "<u2").reshape(rows.shape)


def test_rows_and_maps_come_back_as_they_were(build: Build, tmp_path: Path) -> None:
    _, spec, roles = flat(build, {}, {})
    rng = np.random.default_rng(0)
    sizes = {role: shapes()[name] for name, role in roles.items() if role != "d2t"}
    raw = {role: rng.integers(0, 0x7F00, shape).astype("<u2") for role, shape in sizes.items()}
    parts: dict[str, Rows] = {r: Made("BF16", a.shape, a.tobytes()) for r, a in raw.items()}
    parts["d2t"] = Made("I64", (4,), np.array(D2T, dtype="<i8").tobytes())

    written = write(tmp_path / "d.gguf", spec, parts)

    q, k = (numbers(StoredRows(written, f"blk.0.attn_{p}.weight")) for p in "qk")
    wq, wk = (raw[f"layers.0.self_attn.{p}_proj.weight"] for p in "qk")
    assert np.array_equal(q, wq.reshape(2, 2, 2, 16).swapaxes(1, 2).reshape(8, 16))
    assert np.array_equal(k, wk.reshape(1, 2, 2, 16).swapaxes(1, 2).reshape(4, 16))
    assert written.read_integers("d2t") == [0, 5, 10, 15]
    dialect, again = dialects.read(written)
    found = contents(written, dialect.roles(written), again.attention)
    for role, before in raw.items():
        after = found[role].rows
        if before.ndim == 2:
            assert np.array_equal(numbers(after), before), role
        else:
            assert after.dtype == "F32"
            wide = (before.astype("<u4") << 16).tobytes()
            assert b"".join(blocks(after)) == wide
    assert offsets(found["d2t"].rows).read([range(4)]) == parts["d2t"].read([range(4)])


def test_t2d_is_left_out(build: Build) -> None:
    _, spec, roles = flat(build, {}, {})
    _, names = gguf.write(spec, (*roles.values(), "t2d"))
    assert "t2d" not in names


def test_default_boundaries_are_told_by_the_depth(build: Build) -> None:
    checkpoint = build({**FLAT, "max_position_embeddings": 512}, shapes(), d2t=D2T)
    dialect, spec = dialects.read(checkpoint)
    present = tuple(dialect.roles(checkpoint).values())
    with pytest.raises(ConversionError, match="depend on the depth of the target"):
        gguf.write(spec, present)
    keys, _ = gguf.write(spec, present, target_layers=30)
    assert keys["eagle3.target_layers"] == list(DefaultBoundaries().of(30))


def changed(spec: Eagle3Spec, name: str, value: object) -> Eagle3Spec:
    """`spec` with another value of the fact at `name`."""
    outer, _, inner = name.partition(".")
    if inner:
        part = getattr(spec, outer)
        return replace(spec, **{outer: replace(part, **{inner: declared(value, "test")})})
    return replace(spec, **{outer: value if isinstance(value, LastState) else declared(value, "")})


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("num_layers", 2, "one decoder layer, and this drafter 2"),
        ("activation", "gelu", "computes silu, and this drafter gelu"),
        ("feedback", Feedback.POST_NORM, "the state before the final norm"),
        ("max_position_embeddings", None, "no max_position_embeddings"),
        ("rms_norm_eps", 9.999999747378752e-06, "gives back as 1e-05"),
        ("rope", Rope(theta=1e4, kind="dynamic"), "no RoPE of the kind `dynamic`"),
        ("head", Ownership.TIED, "no head that is the drafter's embedding"),
        ("head", Ownership.TARGET, "the target's head with all its rows"),
        ("vocab_map", VocabMap.PREFIX, "yet its ids are used without one"),
        ("target_hidden_size", 16, "the target's embedding as it is, 16 wide"),
        ("attention.bias", True, "no bias on q, k and v"),
        ("attention.qk_norm", True, "no norms on q and k"),
        ("conditioning.fc_norm", True, "no norm for each captured state"),
        ("conditioning.bias", True, "no bias on fc"),
        ("conditioning.count", 5, "captures three states, and this drafter 5"),
        ("conditioning.boundaries", (2, 6), "needs three layer ids, and this drafter has 2"),
        (
            "conditioning",
            LastState(reason=absent(""), after_final_norm=declared(True, "")),
            "always fuses three captured states",
        ),
    ],
)
def test_what_llamacpp_lacks_is_one_sentence(
    build: Build, name: str, value: object, reason: str
) -> None:
    _, spec, roles = flat(build, {}, {})
    with pytest.raises(ConversionError) as refused:
        gguf.write(changed(spec, name, value), tuple(roles.values()))
    assert reason in refused.value.message
    assert "\n" not in refused.value.message


def test_a_role_without_a_tensor_is_refused(build: Build) -> None:
    _, spec, roles = flat(build, {}, {})
    with pytest.raises(ConversionError, match=r"no tensor for fc_norm\.0\.weight"):
        gguf.write(spec, (*roles.values(), "fc_norm.0.weight"))
    with pytest.raises(ConversionError, match="no tensor for d2t"):
        gguf.write(spec, tuple(set(roles.values()) - {"d2t"}))


@pytest.mark.parametrize(
    ("role", "rows", "error", "reason"),
    [
        ("fc.weight", Made("F8_E4M3", (2, 2), bytes(4)), ConversionError, "F8_E4M3 numbers"),
        ("norm.weight", Made("F64", (2,), bytes(16)), ConversionError, "F64 numbers"),
        ("d2t", Made("F32", (2,), bytes(8)), CheckpointError, "d2t holds F32 numbers"),
        ("d2t", Made("I8", (2,), b"\x07\x7f"), ConversionError, "the ids 7 to 128"),
        ("d2t", Made("I8", (2,), b"\x07\x06"), ConversionError, "one id twice"),
        (
            "layers.0.self_attn.q_proj.weight",
            Made("BF16", (6, 16), bytes(192)),
            CheckpointError,
            "2 heads of 4 rows",
        ),
    ],
)
def test_what_cannot_be_stored_is_one_sentence(
    build: Build, role: str, rows: Rows, error: type[Exception], reason: str
) -> None:
    _, spec, _ = flat(build, {}, {})
    with pytest.raises(error, match=reason):
        stored(spec, role, rows)


def test_a_fact_keeps_its_place(build: Build, tmp_path: Path) -> None:
    checkpoint, spec, roles = flat(build, {}, {})
    parts: dict[str, Rows] = {role: StoredRows(checkpoint, name) for name, role in roles.items()}
    _, again = dialects.read(write(tmp_path / "d.gguf", spec, parts))
    assert isinstance(again, Eagle3Spec)
    assert isinstance(again.conditioning, Fused)
    fact: Fact[Rope] = again.rope
    assert fact.key == "d.gguf :: eagle3.rope.freq_base"
    assert again.conditioning.boundaries.key == "d.gguf :: eagle3.target_layers"
