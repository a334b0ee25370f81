"""What --values finds in weights: placeholders of every kind, and nothing in trained ones."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyas.checkpoint import (
    TensorBytes,
    TensorHeader,
    open_checkpoint,
    open_target,
    write_checkpoint,
)
from eyas.checks import RULES, Finding, Severity, Skip, Trained, TrainedRule, as_trained
from eyas.checks.values import read_values
from eyas.checks.values_decode import DECODED, decode

Make = Callable[..., Path]
Array = NDArray[Any]
FC = "fc.weight"
RANDOM = np.random.default_rng(7)
NARROW = RANDOM.normal(0, 0.011, (128, 512))  # a spread that no initialisation has


def stored(array: Array, dtype: str = "F32") -> TensorBytes:
    """`array` as a tensor of `dtype`; bfloat16 rounded to nearest."""
    if dtype == "BF16":
        bits = array.astype("<f4").view("<u4")
        raw = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()
    else:
        names = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "F8_E4M3": "u1"}
        raw = array.astype(names[dtype]).tobytes()
    return TensorBytes(dtype=dtype, shape=array.shape, data=raw)


@pytest.fixture
def trained_on(make_drafter: Make, tmp_path: Path) -> Callable[..., Trained]:
    """A drafter with just these tensors, each in the role that its name says."""
    plain = as_trained(open_checkpoint(make_drafter("plain")), target=None)

    def make(
        tensors: dict[str, TensorBytes],
        target: Path | None = None,
        *,
        name: str = "values",
        **config: Any,
    ) -> Trained:
        draft = write_checkpoint(tmp_path / name, {"vocab_size": 32, **config}, tensors)
        trained = replace(
            plain,
            checkpoint=open_checkpoint(draft),
            roles={name: name for name in tensors},
            target=None if target is None else open_target(target),
        )
        return replace(trained, values=read_values(trained))

    return make


def found_in(trained: Trained) -> tuple[list[Finding], list[Skip]]:
    rules = [r for r in RULES if r.code.startswith("W") and isinstance(r, TrainedRule)]
    items = [item for rule in rules for item in rule.findings(trained)]
    return (
        [item for item in items if isinstance(item, Finding)],
        [item for item in items if isinstance(item, Skip)],
    )


def with_one(array: Array, value: float) -> Array:
    changed = array.copy()
    changed[3, 5] = value
    return changed


CASES: dict[str, tuple[str, str, Callable[[np.random.Generator], Array], list[str]]] = {
    "trained": (FC, "BF16", lambda _: NARROW, []),
    "zeros": (FC, "BF16", lambda _: np.zeros((128, 512)), ["W901"]),
    "zeros, eight bits": (FC, "F8_E4M3", lambda _: np.zeros((128, 512)), ["W901"]),
    "a norm of zeros": ("norm.weight", "F16", lambda _: np.zeros(256), ["W901"]),
    "a bias of zeros": ("layers.0.self_attn.q_proj.bias", "F32", lambda _: np.zeros(256), []),
    "one that is not zero": (FC, "BF16", lambda _: with_one(np.zeros((128, 512)), 1.0), ["W903"]),
    "one NaN": (FC, "F32", lambda _: with_one(NARROW, np.nan), ["W902"]),
    "one infinity": (FC, "F16", lambda _: with_one(NARROW, np.inf), ["W902"]),
    "a constant": (FC, "F32", lambda _: np.full((128, 512), 0.5), ["W903"]),
    "ones as a norm": ("norm.weight", "F32", lambda _: np.ones(256), []),
    "heads doubled": (FC, "BF16", lambda _: np.repeat(NARROW, 2, axis=0), []),
    "heads tripled": (FC, "BF16", lambda _: np.repeat(NARROW, 3, axis=0), ["W903"]),
    "normal 0.02": (FC, "F32", lambda rng: rng.normal(0, 0.02, (128, 512)), ["W904"]),
    "normal 0.02, rounded": (FC, "BF16", lambda rng: rng.normal(0, 0.02, (128, 512)), ["W904"]),
    "normal 1": (FC, "F16", lambda rng: rng.normal(0, 1, (128, 512)), ["W904"]),
    "kaiming": (FC, "BF16", lambda rng: rng.uniform(-1, 1, (128, 512)) / 512**0.5, ["W904"]),
    "uniform, as wide as normal 0.02": (
        FC,
        "F32",
        lambda rng: rng.uniform(-1, 1, (128, 512)) * 0.02 * 3**0.5,
        [],
    ),
    "normal, as wide as kaiming": (
        FC,
        "F32",
        lambda rng: rng.normal(0, (3 * 512) ** -0.5, (128, 512)),
        [],
    ),
    "normal 0.02, moved by training": (
        FC,
        "F32",
        lambda rng: rng.normal(0, 0.02, (128, 512)) + rng.laplace(0, 0.004, (128, 512)),
        [],
    ),
    "normal 0.02, off centre": (FC, "F32", lambda rng: rng.normal(6e-4, 0.02, (128, 512)), []),
    "normal 0.02, too small to tell": (FC, "F32", lambda rng: rng.normal(0, 0.02, (64, 64)), []),
}


@pytest.mark.parametrize("case", CASES)
def test_placeholders_are_found_and_weights_are_not(
    trained_on: Callable[..., Trained], case: str
) -> None:
    name, dtype, make, expected = CASES[case]
    findings, skips = found_in(trained_on({name: stored(make(np.random.default_rng(7)), dtype)}))
    assert [f.code for f in findings] == expected
    assert skips == []
    assert all(f.place == f"model.safetensors :: {name}" for f in findings)


@pytest.mark.parametrize(
    "config",
    [
        {"initializer_range": 0.011},
        {"transformer_layer_config": {"initializer_range": 0.011}},
    ],
)
def test_the_spread_that_the_config_states_is_the_one_looked_for(
    trained_on: Callable[..., Trained], config: dict[str, Any]
) -> None:
    tensors = {FC: stored(NARROW)}
    findings, _ = found_in(trained_on(tensors, **config))
    assert [(f.code, f.found) for f in findings] == [("W904", "fc.weight: normal with std 0.011")]
    assert findings[0].severity is Severity.WARNING


def test_one_finding_names_every_tensor_it_is_true_of(trained_on: Callable[..., Trained]) -> None:
    names = [f"layers.{i}.mlp.{part}_proj.weight" for i in range(2) for part in ("gate", "up")]
    zeros = stored(np.zeros((16, 8)))
    (finding,), _ = found_in(trained_on({**dict.fromkeys(names, zeros), FC: stored(NARROW)}))
    assert finding.message == "4 tensors hold nothing but zeros"
    assert finding.place == "model.safetensors :: layers.{0..1}.*"
    assert finding.found.endswith("; and 1 more")


def test_without_values_every_rule_of_the_family_says_so(make_drafter: Make) -> None:
    trained = as_trained(open_checkpoint(make_drafter()), target=None)
    findings, skips = found_in(trained)
    assert findings == []
    assert [s.check.split()[0] for s in skips] == [r.code for r in RULES if r.code[0] == "W"]
    assert {s.reason for s in skips} == {"no --values"}


def test_a_type_that_is_not_decoded_is_named(trained_on: Callable[..., Trained]) -> None:
    raw = TensorBytes(dtype="F4", shape=(16, 8), data=bytes(64))
    _, skips = found_in(trained_on({FC: raw}))
    assert [s.check.split()[0] for s in skips] == ["W901", "W902", "W903", "W904"]
    assert {s.reason for s in skips} == {"F4 is not decoded: fc.weight"}


@pytest.mark.parametrize("piece", [64, 96, 2**20])
def test_moments_and_rows_are_those_of_the_whole(
    trained_on: Callable[..., Trained], monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr("eyas.checks.values._PIECE", piece)
    array = RANDOM.gamma(2.0, 1.0, (50, 12))
    array[10:13] = array[9]
    array[0, 0] = np.nan
    array[20, 3] = 0.0
    read = trained_on({FC: stored(array, "F64")}).values
    assert read is not None
    values, finite = read.tensors[FC], array[np.isfinite(array)]
    centred = finite - finite.mean()
    assert (values.zeros, values.not_finite, values.elements) == (1, 1, 600)
    assert values.mean == pytest.approx(finite.mean(), rel=1e-9)
    assert values.std == pytest.approx(finite.std(), rel=1e-9)
    assert values.kurtosis == pytest.approx((centred**4).mean() / finite.var() ** 2, rel=1e-7)
    assert values.largest == finite.max()
    assert (values.rows, values.repeated_rows) == (50, 3)


def test_memory_does_not_grow_with_the_tensor(
    trained_on: Callable[..., Trained], monkeypatch: pytest.MonkeyPatch
) -> None:
    def peak(rows: int) -> int:
        sparse = {FC: TensorBytes(dtype="BF16", shape=(rows, 2048), data=None)}
        trained = trained_on(sparse, name=f"sparse-{rows}")
        tracemalloc.start()
        try:
            read_values(trained)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    monkeypatch.setattr("eyas.checkpoint.checkpoint._CHUNK", 2**18)
    monkeypatch.setattr("eyas.checks.values._PIECE", 2**16)
    assert peak(2**11) < 1.1 * peak(2**9)


@pytest.mark.parametrize(
    ("dtype", "known"),
    [
        ("BF16", {b"\x80\x3f": 1.0, b"\x00\xc0": -2.0, b"\x80\x7f": np.inf}),
        ("F16", {b"\x00\x3c": 1.0, b"\xff\x7b": 65504.0}),
        ("F8_E4M3", {b"\x38": 1.0, b"\x7e": 448.0, b"\x01": 2.0**-9, b"\xb8": -1.0}),
        ("F8_E5M2", {b"\x3c": 1.0, b"\x7b": 57344.0, b"\x01": 2.0**-16, b"\x80": 0.0}),
        ("F8_E4M3FNUZ", {b"\x40": 1.0, b"\x7f": 240.0, b"\x01": 2.0**-10}),
        ("F8_E5M2FNUZ", {b"\x40": 1.0, b"\x7f": 57344.0, b"\x01": 2.0**-17}),
    ],
)
def test_numbers_are_decoded(dtype: str, known: dict[bytes, float]) -> None:
    assert decode(b"".join(known), dtype).tolist() == list(known.values())


@pytest.mark.parametrize(
    ("dtype", "no_numbers"),
    [("F8_E4M3", 2), ("F8_E5M2", 8), ("F8_E4M3FNUZ", 1), ("F8_E5M2FNUZ", 1)],
)
def test_eight_bits_have_as_many_numbers_as_their_definition(dtype: str, no_numbers: int) -> None:
    numbers = decode(bytes(range(256)), dtype)
    assert int((~np.isfinite(numbers)).sum()) == no_numbers
    assert dtype in DECODED


def test_e5m2_is_the_upper_byte_of_a_half() -> None:
    halves = (np.arange(256, dtype="<u2") << 8).view("<f2").astype(float)
    numbers, finite = decode(bytes(range(256)), "F8_E5M2"), np.isfinite(halves)
    assert (numbers[finite] == halves[finite]).all()


EMBEDDING = RANDOM.normal(0, 0.3, (40, 16))


def target_with(folder: Path, embedding: Array | None) -> Path:
    config = {"model_type": "llama", "hidden_size": 16, "vocab_size": 40}
    if embedding is not None:
        name = "model.language_model.embed_tokens.weight"
        return write_checkpoint(folder / "target", config, {name: stored(embedding, "BF16")})
    (folder / "target").mkdir()
    (folder / "target" / "config.json").write_text(json.dumps(config))
    return folder / "target"


@pytest.mark.parametrize(
    ("own", "median"),
    [
        (EMBEDDING, None),
        (EMBEDDING[:32], None),  # the target's has rows of padding
        (EMBEDDING + RANDOM.normal(0, 0.05, (40, 16)), None),  # trained further
        (RANDOM.normal(0, 0.3, (40, 16)), 0.5),
        (np.roll(EMBEDDING, 1, axis=0), 0.5),
    ],
)
def test_the_embedding_is_held_against_the_targets(
    trained_on: Callable[..., Trained], tmp_path: Path, own: Array, median: float | None
) -> None:
    tensors = {"embed_tokens.weight": stored(own, "F32")}
    findings, skips = found_in(trained_on(tensors, target_with(tmp_path, EMBEDDING)))
    assert [f.code for f in findings] == ([] if median is None else ["W905"])
    assert skips == []


@pytest.mark.parametrize(
    ("embedding", "reason"),
    [
        (None, "no --target whose weights are at hand"),
        (EMBEDDING[:, :8], "0 tensors of"),
        (np.zeros((40, 16)), "no token has a row in both"),
    ],
)
def test_an_embedding_that_cannot_be_compared_is_not_a_pass(
    trained_on: Callable[..., Trained], tmp_path: Path, embedding: Array | None, reason: str
) -> None:
    tensors = {"embed_tokens.weight": stored(EMBEDDING)}
    _, skips = found_in(trained_on(tensors, target_with(tmp_path, embedding)))
    assert [s.check for s in skips] == ["W905 embedding-unlike-target"]
    assert reason in skips[0].reason


def test_headers_alone_are_no_values(make_drafter: Make) -> None:
    trained = as_trained(open_checkpoint(make_drafter()), target=None)
    header = TensorHeader(name=FC, dtype="F32", shape=(0, 8), file="x", nbytes=0)
    empty = replace(trained, checkpoint=replace(trained.checkpoint, tensors={FC: header}))
    assert read_values(empty).tensors == {}
