"""Drafters of given facts on disk, in any dialect, with random numbers in several types.

What is in a file is read here with numpy alone, q and k of a GGUF file by a reshape of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tests.convert.reaches import ROPES, STATES, Facts
from tests.dialects.conftest import headers_of

from eyas import dialects
from eyas.checkpoint import Checkpoint, Format, TensorBytes, open_checkpoint, write_checkpoint
from eyas.checkpoint.gguf_tokenizer import tokenizer_keys
from eyas.checkpoint.gguf_write import write_gguf
from eyas.checkpoint.rows import Made, tensor_bytes
from eyas.checkpoint.target import TargetFacts
from eyas.dialects import WRITABLE, specforge
from eyas.dialects.gguf_rows import made, stored
from eyas.spec import (
    DefaultBoundaries,
    DraftSpec,
    Eagle3Spec,
    Feedback,
    Fused,
    LaterNorm,
    Mha,
    Mla,
    Ownership,
    PEagleSpec,
    Rope,
    VocabMap,
    VocabOrder,
    absent,
    declared,
)

VOCAB, REDUCED = 30, 11
# The type of the matrices, and of norms and biases.
TYPES = {
    "bf16": ("BF16", "BF16"),
    "f16": ("F16", "F16"),
    "f32": ("F32", "F32"),
    "bf16, norms in f32": ("BF16", "F32"),
    "bf16, norms in f16": ("BF16", "F16"),
    "f16, norms in f32": ("F16", "F32"),
}
MAPS = ("sorted", "unsorted", "absolute", "absolute, unsorted")
_KINDS = {"F32": "<u4", "F16": "<u2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "BOOL": "|u1"}
_EXPONENT = {"F32": 0x7F800000, "F16": 0x7C00, "BF16": 0x7F80}
_COMPUTED = {"whole": VocabMap.IDENTITY, "prefix": VocabMap.PREFIX}


@dataclass(frozen=True, kw_only=True)
class Held:
    """A tensor of a file: its type and its bits."""

    dtype: str
    bits: np.ndarray[Any, Any]


def _f(**values: Any) -> dict[str, Any]:
    return {name: declared(value, "test") for name, value in values.items()}


def eagle3_spec(facts: Facts, random: Random, target_width: int = 0) -> Eagle3Spec:
    """The spec of a drafter with `facts`, and with random sizes; its map is sorted offsets.

    `target_width` is that of the target's states, where it is not 0.
    """
    states = STATES[facts["states"]]
    kind, theta, scaling = ROPES[facts["rope"]]
    same = facts["width"] == "same"
    hidden = target_width if target_width and same else random.choice((8, 12))
    form = _COMPUTED.get(facts["vocabulary"], VocabMap.OFFSETS)
    mapped = form is VocabMap.OFFSETS
    whole = facts["vocabulary"] in ("whole", "mapped whole")
    one = facts["layers"] == "one"
    embedding, head = facts["owners"]
    norms = facts["norm before fc"]
    return Eagle3Spec(
        attention=_attention(facts["attention"], random),
        conditioning=Fused(
            **_f(
                boundaries=DefaultBoundaries() if states is None else states,
                count=3 if states is None else len(states),
                input_norm=norms in ("all", "both"),
                fc_norm=norms in ("each", "both"),
                bias=facts["bias of fc"],
            )
        ),
        later_norm=absent("test") if one else declared(LaterNorm(facts["layers"]), "test"),
        vocab_order=declared(VocabOrder.SORTED, "test") if mapped else absent("test"),
        **_f(
            hidden_size=hidden,
            target_hidden_size=hidden if same else target_width or 10,
            intermediate_size=random.choice((6, 10)),
            num_layers=1 if one else 2,
            activation=facts["activation"],
            rms_norm_eps=random.choice((1e-5, 1e-6)),
            rope=Rope(theta=theta, kind=kind, scaling=scaling),
            max_position_embeddings=facts["positions"],
            norm_before_residual=facts["normed residual"],
            feedback=Feedback.POST_NORM if facts["normed feedback"] else Feedback.PRE_NORM,
            vocab_size=VOCAB,
            draft_vocab_size=VOCAB if whole else REDUCED,
            vocab_map=form,
            embedding=Ownership(embedding),
            head=Ownership(head),
            target_name=None,
        ),
    )


def _attention(kind: str, random: Random) -> Mha | Mla:
    if kind == "latent":
        sizes = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "v_head_dim")
        drawn = {name: random.choice((4, 6)) for name in sizes}
        return Mla(**_f(num_heads=2, qk_rope_head_dim=4, **drawn))
    heads = random.choice((2, 4))
    return Mha(
        **_f(
            num_heads=heads,
            num_kv_heads=random.choice((1, heads)),
            head_dim=random.choice((4, 6)),
            bias="qkv" in kind,
            qk_norm="normed" in kind,
        )
    )


def in_parallel(drafter: Eagle3Spec, random: Random) -> PEagleSpec:
    """`drafter` as the one inside a P-EAGLE drafter."""
    numbers = (None, 5, 9)
    return PEagleSpec(
        drafter=drafter,
        mask_hidden=declared(True, "test"),
        **_f(mask_token_id=random.choice(numbers), depths=random.choice(numbers)),
    )


def shapes_of(spec: Eagle3Spec | PEagleSpec, attention: str) -> dict[str, tuple[int, ...]]:
    """Role → shape of every tensor but the maps, the bias of o_proj and a mask state included."""
    drafter = spec.drafter if isinstance(spec, PEagleSpec) else spec
    found = {role: shape for role, (_, shape) in headers_of(drafter).items()}
    if "qkvo" in attention:
        hidden = drafter.hidden_size.value
        layers = range(drafter.num_layers.value)
        found |= {f"layers.{i}.self_attn.o_proj.bias": (hidden,) for i in layers}
    if isinstance(spec, PEagleSpec):
        assert isinstance(drafter.conditioning, Fused)
        width = drafter.conditioning.count.value * drafter.target_hidden_size.value
        found["mask_hidden"] = (1, 1, width)
    return {role: shape for role, shape in found.items() if role not in ("d2t", "t2d")}


def random_numbers(shapes: Mapping[str, tuple[int, ...]], types: str, seed: int) -> dict[str, Held]:
    """Any finite bits, the signed zeros and the subnormal numbers among them."""
    chance = np.random.default_rng(seed)
    wide, narrow = TYPES[types]
    found = {}
    for role, shape in shapes.items():
        dtype = narrow if len(shape) == 1 else wide
        kind = np.dtype(_KINDS[dtype])
        bits = chance.integers(0, np.iinfo(kind).max, shape, dtype=kind, endpoint=True)
        infinite = (bits & _EXPONENT[dtype]) == _EXPONENT[dtype]
        found[role] = Held(dtype=dtype, bits=np.where(infinite, 0x3F00, bits).astype(kind))
    return found


def trained_numbers(shapes: Mapping[str, tuple[int, ...]], seed: int) -> dict[str, Held]:
    """Numbers in float32 of the sizes that trained ones have: matrices keep what they are given."""
    chance = np.random.default_rng(seed)
    found = {}
    for role, shape in shapes.items():
        scale, mean = (1.2 * shape[-1] ** -0.5, 0.0) if len(shape) > 1 else (0.3, 1.0)
        drawn = (mean + scale * chance.standard_normal(shape)).astype("<f4")
        found[role] = Held(dtype="F32", bits=drawn.view("<u4"))
    return found


def kept_ids(spec: DraftSpec, order: str, random: Random) -> list[int] | None:
    """The target's id of each draft id; None where there is no map."""
    facts = spec.drafter if isinstance(spec, PEagleSpec) else spec
    assert isinstance(facts, Eagle3Spec)
    if facts.vocab_map.value is not VocabMap.OFFSETS:
        return None
    ids = sorted(random.sample(range(VOCAB), facts.draft_vocab_size.value))
    if "unsorted" in order:
        random.shuffle(ids)
    return ids


def maps_of(ids: list[int] | None, *, absolute: bool) -> dict[str, Held]:
    """d2t and t2d of `ids`."""
    if ids is None:
        return {}
    d2t = np.array(ids, "<i8") - (0 if absolute else np.arange(len(ids)))
    mask = np.isin(np.arange(VOCAB), ids).astype("|u1")
    return {"d2t": Held(dtype="I64", bits=d2t), "t2d": Held(dtype="BOOL", bits=mask)}


def write(
    path: Path, dialect: str, spec: DraftSpec, parts: Mapping[str, Held], target: TargetFacts
) -> Checkpoint:
    """A drafter of `spec` as `dialect` has it; `parts` are by role, d2t as offsets for GGUF."""
    if dialect == "gguf":
        return _write_gguf(path.with_suffix(".gguf"), spec, parts, target)
    choices = _of_specforge(spec) if dialect == specforge.name else {}
    config, names = WRITABLE[dialect].write(spec, tuple(parts), **choices)
    tensors = {
        names[role]: TensorBytes(dtype=h.dtype, shape=h.bits.shape, data=h.bits.tobytes())
        for role, h in parts.items()
        if role in names
    }
    return open_checkpoint(write_checkpoint(path, config, tensors))


def _of_specforge(spec: DraftSpec) -> dict[str, Any]:
    """How its form names a second layer, and the embeddings among the captured states."""
    if not isinstance(spec, Eagle3Spec):
        return {}
    found = {"layer_prefix": "layers.0."} if spec.num_layers.value > 1 else {}
    conditioning = spec.conditioning
    assert isinstance(conditioning, Fused)
    boundaries = conditioning.boundaries.value
    zero = not isinstance(boundaries, DefaultBoundaries) and 0 in boundaries
    return found | ({"ids": "top"} if zero else {})


def _write_gguf(
    path: Path, spec: DraftSpec, parts: Mapping[str, Held], target: TargetFacts
) -> Checkpoint:
    assert isinstance(spec, Eagle3Spec)
    depth = target.num_layers
    keys, names = WRITABLE["gguf"].write(spec, tuple(parts), target_layers=depth)  # type: ignore[call-arg]
    rows = {
        names[role]: stored(spec, role, Made(h.dtype, h.bits.shape, h.bits.tobytes()))
        for role, h in parts.items()
        if role in names
    }
    tensors = {name: tensor_bytes(row) for name, row in (rows | made(spec)).items()}
    write_gguf(path, {**keys, **tokenizer_keys(target, VOCAB)}, tensors)
    return open_checkpoint(path)


def files(checkpoint: Checkpoint) -> dict[str, Held]:
    """Tensor name → what the file has."""
    found = {}
    for name, header in checkpoint.tensors.items():
        bits = np.frombuffer(checkpoint.read_bytes(name), _KINDS[header.dtype])
        assert len(bits) == prod(header.shape)
        found[name] = Held(dtype=header.dtype, bits=bits.reshape(header.shape))
    return found


def by_role(checkpoint: Checkpoint) -> dict[str, Held]:
    """Role → numbers as trained; the map as ids, and no mask."""
    dialect, spec = dialects.read(checkpoint)
    roles = dialect.roles(checkpoint)
    found = {roles[name]: held for name, held in files(checkpoint).items() if name in roles}
    facts = spec.drafter if isinstance(spec, PEagleSpec) else spec
    assert isinstance(facts, Eagle3Spec)
    if checkpoint.format is Format.GGUF and isinstance(facts.attention, Mha):
        dim = facts.attention.head_dim.value
        for role in found:
            if role.endswith(("self_attn.q_proj.weight", "self_attn.k_proj.weight")):
                found[role] = replace(found[role], bits=_halves(found[role].bits, dim))
    if "d2t" in found and facts.vocab_map.value is VocabMap.OFFSETS:
        d2t = found["d2t"]
        found["d2t"] = replace(d2t, bits=d2t.bits + np.arange(len(d2t.bits)))
    found.pop("t2d", None)
    return found


def _halves(bits: np.ndarray[Any, Any], dim: int) -> np.ndarray[Any, Any]:
    """Rows that lie pair by pair in each head, as first halves and then second halves."""
    heads = len(bits) // dim
    return bits.reshape(heads, dim // 2, 2, -1).swapaxes(1, 2).reshape(bits.shape)


def as_float32_bits(held: Held) -> np.ndarray[Any, Any]:
    """The bits of the numbers in float32, which holds each type exactly."""
    if held.dtype == "BF16":
        return held.bits.astype("<u4") << 16
    if held.dtype == "F16":
        return held.bits.view("<f2").astype("<f4").view("<u4")
    return held.bits
