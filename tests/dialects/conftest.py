"""Drafters for the dialects' tests, built from what a spec says."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eyas.checkpoint import Checkpoint, open_checkpoint, write_sparse
from eyas.spec import DefaultBoundaries, Eagle3Spec, Fact, Fused, Mha, Ownership, VocabMap

Headers = dict[str, tuple[str, tuple[int, ...]]]


def headers_of(spec: Eagle3Spec) -> Headers:
    """Role → type and shape of every tensor that a drafter of `spec` has."""
    hidden = spec.hidden_size.value
    shapes: dict[str, tuple[int, ...]] = {"norm.weight": (hidden,)}
    conditioning = spec.conditioning
    if isinstance(conditioning, Fused):
        width = conditioning.count.value * spec.target_hidden_size.value
        shapes["fc.weight"] = (hidden, width)
        if conditioning.bias.value:
            shapes["fc.bias"] = (hidden,)
        if conditioning.input_norm.value:
            shapes["input_norm.weight"] = (width,)
        if conditioning.fc_norm.value:
            for i in range(conditioning.count.value):
                shapes[f"fc_norm.{i}.weight"] = (spec.target_hidden_size.value,)
    for i in range(spec.num_layers.value):
        shapes |= {f"layers.{i}.{role}": shape for role, shape in _layer(spec, i)}
    if spec.embedding.value is Ownership.OWN:
        shapes["embed_tokens.weight"] = (spec.vocab_size.value, hidden)
    if spec.head.value is Ownership.OWN:
        shapes["lm_head.weight"] = (spec.draft_vocab_size.value, hidden)
    headers: Headers = {role: ("BF16", shape) for role, shape in shapes.items()}
    if spec.vocab_map.value is VocabMap.OFFSETS:
        headers["d2t"] = ("I64", (spec.draft_vocab_size.value,))
        headers["t2d"] = ("BOOL", (spec.vocab_size.value,))
    return headers


def _layer(spec: Eagle3Spec, index: int) -> list[tuple[str, tuple[int, ...]]]:
    hidden, inner, attention = spec.hidden_size.value, spec.intermediate_size.value, spec.attention
    width = hidden if index else 2 * hidden
    norms = [spec.later_norm.value] if index else ["input_layernorm", "hidden_norm"]
    found: list[tuple[str, tuple[int, ...]]] = [
        (f"{norm}.weight", (hidden,)) for norm in (*norms, "post_attention_layernorm")
    ]
    found += [
        ("mlp.gate_proj.weight", (inner, hidden)),
        ("mlp.up_proj.weight", (inner, hidden)),
        ("mlp.down_proj.weight", (hidden, inner)),
    ]
    if isinstance(attention, Mha):
        dim = attention.head_dim.value
        rows = {"q": attention.num_heads.value * dim, "k": attention.num_kv_heads.value * dim}
        rows["v"] = rows["k"]
        found += [(f"self_attn.{p}_proj.weight", (n, width)) for p, n in rows.items()]
        found.append(("self_attn.o_proj.weight", (hidden, rows["q"])))
        if attention.bias.value:
            found += [(f"self_attn.{p}_proj.bias", (n,)) for p, n in rows.items()]
        if attention.qk_norm.value:
            found += [(f"self_attn.{p}_norm.weight", (dim,)) for p in "qk"]
        return found
    heads, rotary = attention.num_heads.value, attention.qk_rope_head_dim.value
    q_rank, kv_rank = attention.q_lora_rank.value, attention.kv_lora_rank.value
    nope, v_dim = attention.qk_nope_head_dim.value, attention.v_head_dim.value
    return [
        *found,
        ("self_attn.q_a_proj.weight", (q_rank, width)),
        ("self_attn.q_a_layernorm.weight", (q_rank,)),
        ("self_attn.q_b_proj.weight", (heads * (nope + rotary), q_rank)),
        ("self_attn.kv_a_proj_with_mqa.weight", (kv_rank + rotary, width)),
        ("self_attn.kv_a_layernorm.weight", (kv_rank,)),
        ("self_attn.kv_b_proj.weight", (heads * (nope + v_dim), kv_rank)),
        ("self_attn.o_proj.weight", (hidden, heads * v_dim)),
    ]


def maps_of(spec: Eagle3Spec) -> dict[str, bytes]:
    """The bytes of d2t and t2d: every id that is a multiple of the spread is kept."""
    if spec.vocab_map.value is not VocabMap.OFFSETS:
        return {}
    kept = range(0, spec.vocab_size.value, spec.vocab_size.value // spec.draft_vocab_size.value)
    kept = kept[: spec.draft_vocab_size.value]
    offsets = [token - i for i, token in enumerate(kept)]
    mask = bytes(token in kept for token in range(spec.vocab_size.value))
    return {"d2t": struct.pack(f"<{len(offsets)}q", *offsets), "t2d": mask}


def values(fact: Any) -> Any:
    """A spec as nested dicts of bare values, without where they come from."""
    if isinstance(fact, Fact):
        return values(fact.value)
    if dataclasses.is_dataclass(fact) and not isinstance(fact, DefaultBoundaries):
        fields = {f.name: values(getattr(fact, f.name)) for f in dataclasses.fields(fact)}
        return {"kind": type(fact).__name__, **fields}
    return fact


Build = Callable[..., Checkpoint]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """A function that writes a small checkpoint and opens it."""

    def make(
        config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], **maps: list[int]
    ) -> Checkpoint:
        headers: Headers = {name: ("BF16", shape) for name, shape in shapes.items()}
        contents = {}
        for name, numbers in maps.items():
            kind, code = ("BOOL", "B") if name == "t2d" else ("I64", "q")
            headers[name] = (kind, (len(numbers),))
            contents[name] = struct.pack(f"<{len(numbers)}{code}", *numbers)
        place = tmp_path / f"drafter{len(list(tmp_path.iterdir()))}"
        return open_checkpoint(write_sparse(place, config, headers, contents))

    return make


@pytest.fixture(scope="session")
def kit() -> Any:
    """headers_of, maps_of and values, for tests that cannot import from here."""
    return SimpleNamespace(headers_of=headers_of, maps_of=maps_of, values=values)
