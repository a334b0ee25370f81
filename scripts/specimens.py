"""Tiny drafters of each kind, as each dialect's own writer states them, and a target they fit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from scripts.specimen_tensors import (
    DRAFTED,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    INNER,
    KV_HEADS,
    KV_RANK,
    LAYERS,
    MARKOV,
    NOPE,
    Q_RANK,
    ROTARY,
    VALUE,
    VOCAB,
    tensors_of,
)

from eyas import dialects
from eyas.checkpoint import Checkpoint, TargetFacts, open_checkpoint, open_target
from eyas.checkpoint.rows import Made
from eyas.checkpoint.write import TensorBytes, write_checkpoint
from eyas.convert import DialectGoal, convert
from eyas.convert.recheck import changes
from eyas.dialects import WRITABLE
from eyas.errors import ConversionError
from eyas.spec import (
    Boundaries,
    Confidence,
    DefaultBoundaries,
    DFlashSpec,
    DraftSpec,
    Eagle3Spec,
    Fact,
    Feedback,
    Fused,
    LastState,
    LaterNorm,
    Markov,
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

LOCATION = "the drafter"
_TARGETS = b"\0\x3f" * VOCAB * HIDDEN  # the numbers of the target's embedding, and of its head
T = TypeVar("T")


def _is(value: T) -> Fact[T]:
    return declared(value, "specimen")


@dataclass(frozen=True, slots=True, kw_only=True)
class Specimen:
    """A drafter of one kind as one dialect states it."""

    kind: str
    dialect: str
    checkpoint: Checkpoint
    spec: DraftSpec


def specimens(target: TargetFacts, place: Path) -> list[Specimen]:
    """Every kind in every dialect that can state it, dialect by dialect; files go to `place`."""
    found = [made for name in WRITABLE if name != "gguf" for made in _of_dialect(name, place)]
    return [*found, *_in_gguf(found, target, place)]


def make_target(place: Path) -> TargetFacts:
    """A target of 12 layers, with weights and a tokenizer of 32 tokens, in the new `place`."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "vocab_size": VOCAB,
        "max_position_embeddings": 512,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
    }
    letters = [chr(ord("a") + i) for i in range(26)]
    tokens = [*letters, "ab", "cd", "ef", "gh", "ij", "kl"]
    tokenizer = {
        "model": {
            "type": "BPE",
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [" ".join(token) for token in tokens[26:]],
        },
        "pre_tokenizer": {"type": "ByteLevel", "use_regex": True},
    }
    matrix = TensorBytes(dtype="BF16", shape=(VOCAB, HIDDEN), data=_TARGETS)
    matrices = {"model.embed_tokens.weight": matrix, "lm_head.weight": matrix}
    write_checkpoint(place, config, matrices, {"tokenizer.json": json.dumps(tokenizer)})
    return open_target(place)


def _of_dialect(dialect: str, place: Path) -> Iterator[Specimen]:
    """The kinds that `dialect` can state, each next to the plainest drafter that it can."""
    seen: list[tuple[DraftSpec, bool]] = []
    for kind, change in KINDS.items():
        for base in _bases():
            made = _written(kind, dialect, change(base), place)
            if made is None:
                continue
            found = made.spec, kind == _OWN
            if found not in seen:  # a plain one of some dialects has it always
                yield made
            seen.append(found)
            break


def _bases() -> Iterator[Eagle3Spec]:
    """Plain EAGLE-3 drafters: what some producer's code always has is in one of them."""
    for embedding in (Ownership.TARGET, Ownership.OWN):
        yield _plain(DefaultBoundaries(), qk_norm=False, embedding=embedding)
    # DeepSpec's, as its code always is.
    yield _whole(_plain((1, 3, 5, 7, 9), qk_norm=True, embedding=Ownership.OWN))


def _plain(ids: Boundaries, *, qk_norm: bool, embedding: Ownership) -> Eagle3Spec:
    return Eagle3Spec(
        hidden_size=_is(HIDDEN),
        target_hidden_size=_is(HIDDEN),
        intermediate_size=_is(INNER),
        num_layers=_is(1),
        later_norm=absent("specimen"),
        attention=Mha(
            num_heads=_is(HEADS),
            num_kv_heads=_is(KV_HEADS),
            head_dim=_is(HEAD_DIM),
            bias=_is(False),
            qk_norm=_is(qk_norm),
        ),
        conditioning=Fused(
            boundaries=_is(ids),
            count=_is(3 if isinstance(ids, DefaultBoundaries) else len(ids)),
            input_norm=_is(False),
            fc_norm=_is(False),
            bias=_is(False),
        ),
        activation=_is("silu"),
        rms_norm_eps=_is(1e-5),
        rope=_is(Rope(theta=10000.0, kind="default")),
        max_position_embeddings=_is(512),
        norm_before_residual=_is(False),
        feedback=_is(Feedback.PRE_NORM),
        vocab_size=_is(VOCAB),
        draft_vocab_size=_is(DRAFTED),
        vocab_map=_is(VocabMap.OFFSETS),
        vocab_order=_is(VocabOrder.SORTED),
        embedding=_is(embedding),
        head=_is(Ownership.OWN),
        target_name=absent("specimen"),
    )


def _with(spec: Eagle3Spec, **facts: Any) -> Eagle3Spec:
    return replace(spec, **{name: _is(value) for name, value in facts.items()})


def _fused(spec: Eagle3Spec, **facts: Any) -> Eagle3Spec:
    conditioning = replace(spec.conditioning, **{n: _is(v) for n, v in facts.items()})
    return replace(spec, conditioning=conditioning)


def _captured(spec: Eagle3Spec, *, ids: tuple[int, ...]) -> Eagle3Spec:
    return _fused(spec, boundaries=ids, count=len(ids))


def _heads(spec: Eagle3Spec, **facts: bool) -> Eagle3Spec:
    assert isinstance(spec.attention, Mha)
    return replace(spec, attention=replace(spec.attention, **{n: _is(v) for n, v in facts.items()}))


def _whole(spec: Eagle3Spec, **facts: Any) -> Eagle3Spec:
    drawn = {"draft_vocab_size": VOCAB, "vocab_map": VocabMap.IDENTITY, "vocab_order": None}
    return _with(spec, **drawn, **facts)


def _unsorted(spec: Eagle3Spec) -> Eagle3Spec:
    mapped = spec.vocab_map.value is VocabMap.OFFSETS
    return _with(spec, vocab_order=VocabOrder.UNSORTED) if mapped else spec


def _latent(spec: Eagle3Spec) -> Eagle3Spec:
    attention = Mla(
        num_heads=_is(HEADS),
        q_lora_rank=_is(Q_RANK),
        kv_lora_rank=_is(KV_RANK),
        qk_nope_head_dim=_is(NOPE),
        qk_rope_head_dim=_is(ROTARY),
        v_head_dim=_is(VALUE),
    )
    return replace(spec, attention=attention)


def _last(spec: Eagle3Spec) -> Eagle3Spec:
    reason = _is("use_aux_hidden_state is false")
    return replace(spec, conditioning=LastState(reason=reason, after_final_norm=_is(True)))


def _parallel(spec: Eagle3Spec) -> PEagleSpec:
    return PEagleSpec(
        drafter=spec, mask_token_id=_is(31), mask_hidden=_is(True), depths=absent("specimen")
    )


def _block(spec: Eagle3Spec, *, heads: bool) -> DFlashSpec:
    assert isinstance(spec.attention, Mha)
    own = spec.embedding.value is Ownership.OWN
    shared = {
        name: getattr(spec, name)
        for name in DFlashSpec.__dataclass_fields__
        if name in Eagle3Spec.__dataclass_fields__
    }
    return DFlashSpec(
        **shared
        | {
            "attention": replace(spec.attention, qk_norm=_is(True)),
            "draft_vocab_size": _is(VOCAB),
            "vocab_map": _is(VocabMap.IDENTITY),
            "vocab_order": absent("specimen"),
            "head": _is(Ownership.OWN if own else Ownership.TARGET),
        },
        boundaries=_is((2, 5, 9)),
        count=_is(3),
        sliding_layers=_is(frozenset()),
        sliding_window=absent("specimen"),
        causal_layers=_is(frozenset()),
        block_size=_is(8),
        mask_token_id=_is(31),
        sample_from_anchor=_is(heads),
        markov=Markov(rank=_is(MARKOV), kind=_is("vanilla")) if heads else None,
        confidence=Confidence(with_markov=_is(False)) if heads else None,
    )


def _rope(kind: str, **scaling: float) -> Rope:
    return Rope(theta=10000.0, kind=kind, scaling=scaling)


_LLAMA3 = _rope(
    "llama3",
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=64,
)
_YARN = _rope(
    "yarn", factor=4.0, original_max_position_embeddings=128, beta_fast=32.0, beta_slow=1.0
)

_OWN = "an embedding that is not the target's"

# What a kind is called, and how it differs from a plain drafter.
KINDS: Mapping[str, Callable[[Eagle3Spec], DraftSpec]] = {
    "plain": lambda spec: spec,
    "its own layer ids": partial(_captured, ids=(3, 6, 10)),
    "the embeddings captured": partial(_captured, ids=(0, 6, 9)),
    "five states": partial(_captured, ids=(1, 3, 5, 7, 9)),
    "norm_before_residual": partial(_with, norm_before_residual=True),
    "norm_before_fc": partial(_fused, input_norm=True),
    "fc_norm": partial(_fused, fc_norm=True),
    "norm_output": partial(_with, feedback=Feedback.POST_NORM),
    "a bias on fc": partial(_fused, bias=True),
    "a bias on q, k and v": partial(_heads, bias=True),
    "norms on q and k": partial(_heads, qk_norm=True),
    "two layers, the second with input_layernorm": partial(
        _with, num_layers=2, later_norm=LaterNorm.INPUT_LAYERNORM
    ),
    "two layers, the second with hidden_norm": partial(
        _with, num_layers=2, later_norm=LaterNorm.HIDDEN_NORM
    ),
    "latent attention (MLA)": _latent,
    "a map that is not sorted": _unsorted,
    "the whole vocabulary": _whole,
    _OWN: partial(_with, embedding=Ownership.OWN),
    "a tied head": partial(_whole, embedding=Ownership.OWN, head=Ownership.TIED),
    "the target's head": partial(_whole, embedding=Ownership.TARGET, head=Ownership.TARGET),
    "llama3 RoPE": partial(_with, rope=_LLAMA3),
    "yarn RoPE": partial(_with, rope=_YARN),
    "the last state, no fc": _last,
    "P-EAGLE": _parallel,
    "DFlash": partial(_block, heads=False),
    "DSpark": partial(_block, heads=True),
}


def _written(kind: str, dialect: str, spec: DraftSpec, place: Path) -> Specimen | None:
    """The drafter of `spec` as `dialect` writes it; None where it cannot be stated there.

    Raises ValueError where it does not read back as it was meant.
    """
    module = WRITABLE[dialect]
    depth = {"target_layers": LAYERS} if dialect in ("specforge", "dflash", "deepspec") else {}
    for output_bias in (True, False):
        tensors = tensors_of(spec, module.maps, output_bias=output_bias)
        try:
            config, names = module.write(spec, tensors, dtype="bfloat16", **depth)
        except ConversionError:
            continue
        shared = ["embed_tokens.weight"] if kind != _OWN else []
        shared += ["lm_head.weight"] if isinstance(spec, DFlashSpec) else []
        for role in tensors.keys() & shared:
            tensors[role] = Made("BF16", (VOCAB, HIDDEN), _TARGETS)
        stored = {names[role]: rows for role, rows in tensors.items()}
        checkpoint = _stored(place, config, stored)
        found, again = dialects.read(checkpoint)
        wrong = [*changes(spec, again), *([] if found.name == dialect else [found.name])]
        if wrong:
            raise ValueError(f"{kind} in {dialect} is read with {wrong}")
        return Specimen(kind=kind, dialect=dialect, checkpoint=checkpoint, spec=spec)
    return None


def _in_gguf(others: list[Specimen], target: TargetFacts, place: Path) -> Iterator[Specimen]:
    """The kinds that a GGUF file can hold, each from the first of `others` that gives it."""
    for number, kind in enumerate(KINDS):
        file = place / f"{number}.gguf"
        for other in others:
            if other.kind != kind:
                continue
            try:
                done = convert(other.checkpoint, file, DialectGoal("gguf"), target=target)
            except ConversionError:
                continue
            checkpoint = replace(open_checkpoint(file), location=LOCATION)
            yield Specimen(kind=kind, dialect="gguf", checkpoint=checkpoint, spec=done.plan.spec)
            break


def _stored(place: Path, config: Mapping[str, Any], rows: Mapping[str, Made]) -> Checkpoint:
    directory = place / f"{len(list(place.iterdir()))}"
    tensors = {n: TensorBytes(dtype=r.dtype, shape=r.shape, data=r.data) for n, r in rows.items()}
    return replace(open_checkpoint(write_checkpoint(directory, config, tensors)), location=LOCATION)
