"""Drawn DFlash and DSpark drafters, and the tensors that they have."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from tests.dialects.drawn import FLAG, REDUCED, ROPES, SMALL, WHOLE, fact, mha

from eyas.spec import (
    Confidence,
    DFlashSpec,
    Markov,
    Mha,
    Ownership,
    VocabMap,
    VocabOrder,
    declared,
)

Headers = dict[str, tuple[str, tuple[int, ...]]]


@st.composite
def block_drafters(
    draw: st.DrawFn,
    *,
    causal: tuple[str, ...] = ("none", "sliding", "all", "first"),
    heads: bool = True,
    anchored: bool | None = None,
    by_markov: bool = False,
    owns: tuple[Ownership, ...] = (Ownership.OWN, Ownership.TARGET),
    reduced: bool | None = None,
    lowest: int = 0,
    sliding: bool = True,
    block_sizes: st.SearchStrategy[int | None] = st.none() | SMALL,  # noqa: B008 - immutable
    one_width: bool = False,
    boundaries_known: bool = False,
) -> DFlashSpec:
    """`anchored` and `by_markov` say when the anchor drafts; without either it may or may not."""
    layers = draw(st.integers(1, 3))
    slides = frozenset(i for i in range(layers) if sliding and draw(FLAG))
    kinds = {"none": frozenset(), "sliding": slides, "all": frozenset(range(layers))}
    kinds["first"] = frozenset({0})
    small = draw(FLAG) if reduced is None else reduced
    vocab, draft_vocab, vocab_map = draw(REDUCED if small else WHOLE)
    ids = st.lists(st.integers(lowest, 80), min_size=1, max_size=6, unique=True)
    boundaries = tuple(sorted(draw(ids)))
    count = len(boundaries)
    known = boundaries_known or draw(st.integers(0, 9)) > 0
    embedding = draw(st.sampled_from(owns))
    hidden = draw(st.integers(2, 64))
    rank = draw(st.integers(1, 8)) if heads and draw(FLAG) else 0
    kind = draw(st.sampled_from(["vanilla", "gated"]))
    confident = heads and draw(FLAG)
    with_markov = bool(rank) and draw(FLAG)
    anchor = bool(rank) if by_markov else draw(FLAG) if anchored is None else anchored
    head = Ownership.OWN if small else embedding
    return DFlashSpec(
        hidden_size=declared(hidden, "test"),
        target_hidden_size=declared(hidden if one_width else draw(st.integers(2, 64)), "test"),
        intermediate_size=draw(fact(SMALL)),
        num_layers=declared(layers, "test"),
        attention=draw(mha(qk_norm=True, always=True)),
        boundaries=declared(boundaries if known else None, "test"),
        count=declared(count, "test"),
        sliding_layers=declared(slides, "test"),
        sliding_window=declared(draw(st.integers(1, 99)) if slides else None, "test"),
        causal_layers=declared(kinds[draw(st.sampled_from(causal))], "test"),
        block_size=draw(fact(block_sizes)),
        mask_token_id=draw(fact(st.none() | st.integers(0, 99))),
        sample_from_anchor=declared(anchor, "test"),
        markov=Markov(rank=declared(rank, "test"), kind=declared(kind, "test")) if rank else None,
        confidence=Confidence(with_markov=declared(with_markov, "test")) if confident else None,
        activation=draw(fact(st.sampled_from(["silu", "gelu"]))),
        rms_norm_eps=draw(fact(st.floats(1e-12, 1e-2))),
        rope=draw(fact(ROPES)),
        max_position_embeddings=draw(fact(st.none() | SMALL)),
        vocab_size=declared(vocab, "test"),
        draft_vocab_size=declared(draft_vocab, "test"),
        vocab_map=declared(vocab_map, "test"),
        vocab_order=declared(VocabOrder.SORTED if vocab_map is VocabMap.OFFSETS else None, "test"),
        embedding=declared(embedding, "test"),
        head=declared(head, "test"),
        target_name=declared(None, "test"),
    )


def block_headers(spec: DFlashSpec) -> Headers:
    """Role → type and shape of every tensor that a drafter of `spec` has."""
    hidden, count = spec.hidden_size.value, spec.count.value
    assert count is not None
    shapes: dict[str, tuple[int, ...]] = {
        "norm.weight": (hidden,),
        "hidden_norm.weight": (hidden,),
        "fc.weight": (hidden, count * spec.target_hidden_size.value),
    }
    for i in range(spec.num_layers.value):
        shapes |= {f"layers.{i}.{role}": shape for role, shape in _layer(spec).items()}
    vocab, draft = spec.vocab_size.value, spec.draft_vocab_size.value
    if spec.embedding.value is Ownership.OWN:
        shapes["embed_tokens.weight"] = (vocab, hidden)
    if spec.head.value is Ownership.OWN:
        shapes["lm_head.weight"] = (draft, hidden)
    rank = 0 if spec.markov is None else spec.markov.rank.value
    if spec.markov is not None:
        shapes["markov_head.markov_w1.weight"] = (vocab, rank)
        shapes["markov_head.markov_w2.weight"] = (draft, rank)
        if spec.markov.kind.value == "gated":
            shapes["markov_head.gate_proj.weight"] = (rank, hidden + rank)
    if spec.confidence is not None:
        seen = hidden + (rank if spec.confidence.with_markov.value else 0)
        shapes["confidence_head.proj.weight"] = (1, seen)
        shapes["confidence_head.proj.bias"] = (1,)
    headers: Headers = {role: ("BF16", shape) for role, shape in shapes.items()}
    if spec.vocab_map.value is VocabMap.OFFSETS:
        headers |= {"d2t": ("I64", (draft,)), "t2d": ("BOOL", (vocab,))}
    return headers


def _layer(spec: DFlashSpec) -> dict[str, Any]:
    attention = spec.attention
    assert isinstance(attention, Mha)
    hidden, inner, dim = spec.hidden_size.value, spec.intermediate_size.value, attention.head_dim
    q, kv = attention.num_heads.value * dim.value, attention.num_kv_heads.value * dim.value
    shapes: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (q, hidden),
        "self_attn.k_proj.weight": (kv, hidden),
        "self_attn.v_proj.weight": (kv, hidden),
        "self_attn.o_proj.weight": (hidden, q),
        "self_attn.q_norm.weight": (dim.value,),
        "self_attn.k_norm.weight": (dim.value,),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }
    if attention.bias.value:
        shapes |= {f"self_attn.{p}_proj.bias": (n,) for p, n in (("q", q), ("k", kv), ("v", kv))}
        shapes["self_attn.o_proj.bias"] = (hidden,)
    return shapes
