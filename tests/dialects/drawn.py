"""Drawn EAGLE-3 drafters: strategies over the facts of a spec."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from eyas.spec import (
    Boundaries,
    DefaultBoundaries,
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
    absent,
    declared,
)

SMALL = st.integers(1, 40)
FLAG = st.booleans()
NUMBER = st.floats(1e-3, 1e6, allow_nan=False)
ROPES = st.one_of(
    st.builds(Rope, theta=NUMBER, kind=st.just("default")),
    st.builds(
        Rope,
        theta=NUMBER,
        kind=st.sampled_from(["llama3", "yarn", "linear", "dynamic"]),
        scaling=st.fixed_dictionaries(
            {"factor": NUMBER},
            optional={"original_max_position_embeddings": SMALL, "truncate": FLAG},
        ),
    ),
)


def fact(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return strategy.map(lambda value: declared(value, "test"))


def sizes_and_map(draft: int, times: int) -> st.SearchStrategy[tuple[int, int, VocabMap]]:
    other = VocabMap.IDENTITY if times == 1 else VocabMap.PREFIX
    maps = st.sampled_from([VocabMap.OFFSETS, other])
    return maps.map(lambda kind: (draft * times, draft, kind))


# The target's size, the drafter's, and the map between them.
VOCABULARIES = st.tuples(st.integers(1, 20), st.integers(1, 3)).flatmap(
    lambda sizes: sizes_and_map(*sizes)
)
WHOLE = st.integers(1, 20).map(lambda size: (size, size, VocabMap.IDENTITY))
REDUCED = st.tuples(st.integers(1, 20), st.integers(2, 3)).map(
    lambda sizes: (sizes[0] * sizes[1], sizes[0], VocabMap.OFFSETS)
)


@st.composite
def fused(
    draw: st.DrawFn,
    *,
    lowest: int,
    bias: bool,
    counts: tuple[int, int] = (1, 6),
    defaults: bool | None = None,
    norms: st.SearchStrategy[bool] = FLAG,
    fc_norms: st.SearchStrategy[bool] = FLAG,
) -> Fused:
    """Captured states: the default ones where `defaults`, others where not, either where None."""
    boundaries: Boundaries = DefaultBoundaries()
    if draw(FLAG) if defaults is None else not defaults:
        least, most = counts
        ids = st.lists(st.integers(lowest, 80), min_size=least, max_size=most, unique=True)
        boundaries = tuple(sorted(draw(ids)))
    count = 3 if isinstance(boundaries, DefaultBoundaries) else len(boundaries)
    return Fused(
        boundaries=declared(boundaries, "test"),
        count=declared(count, "test"),
        input_norm=draw(fact(norms)),
        fc_norm=draw(fact(fc_norms)),
        bias=draw(fact(FLAG)) if bias else declared(False, "test"),
    )


def mha(
    *, qk_norm: bool, bias: st.SearchStrategy[bool] = FLAG, always: bool = False
) -> st.SearchStrategy[Mha]:
    norm = fact(FLAG) if qk_norm and not always else fact(st.just(always))
    return st.builds(
        Mha,
        num_heads=fact(SMALL),
        num_kv_heads=fact(SMALL),
        head_dim=fact(SMALL),
        bias=fact(bias),
        qk_norm=norm,
    )


MLA = st.builds(
    Mla,
    num_heads=fact(SMALL),
    q_lora_rank=fact(SMALL),
    kv_lora_rank=fact(SMALL),
    qk_nope_head_dim=fact(SMALL),
    qk_rope_head_dim=fact(SMALL),
    v_head_dim=fact(SMALL),
)
LAST = st.builds(
    LastState,
    reason=fact(st.just("use_aux_hidden_state is false")),
    after_final_norm=fact(st.just(True)),
)


@st.composite
def drafters(
    draw: st.DrawFn,
    *,
    attention: st.SearchStrategy[Mha] | st.SearchStrategy[Mha | Mla],
    conditioning: st.SearchStrategy[Fused] | st.SearchStrategy[Fused | LastState],
    layers: int,
    later_norms: tuple[LaterNorm, ...],
    target_name: st.SearchStrategy[str | None],
    ropes: st.SearchStrategy[Rope] = ROPES,
    flags: st.SearchStrategy[bool] = FLAG,
    feedbacks: tuple[Feedback, ...] = tuple(Feedback),
    embeddings: tuple[Ownership, ...] = (Ownership.OWN, Ownership.TARGET),
    own_head: bool = False,
    one_width: bool = False,
    vocabularies: st.SearchStrategy[tuple[int, int, VocabMap]] = VOCABULARIES,
) -> Eagle3Spec:
    vocab, draft_vocab, vocab_map = draw(vocabularies)
    num_layers = draw(st.integers(1, layers))
    later_norm = declared(draw(st.sampled_from(later_norms)), "test")
    embedding = draw(st.sampled_from(embeddings))
    heads = [Ownership.OWN]
    if vocab == draft_vocab and not own_head:
        heads.append(Ownership.TIED if embedding is Ownership.OWN else Ownership.TARGET)
    hidden_size = draw(fact(st.integers(2, 64)))
    mapped = vocab_map is VocabMap.OFFSETS
    return Eagle3Spec(
        hidden_size=hidden_size,
        target_hidden_size=hidden_size if one_width else draw(fact(st.integers(2, 64))),
        intermediate_size=draw(fact(SMALL)),
        num_layers=declared(num_layers, "test"),
        later_norm=later_norm if num_layers > 1 else absent("test"),
        attention=draw(attention),
        conditioning=draw(conditioning),
        activation=draw(fact(st.sampled_from(["silu", "gelu"]))),
        rms_norm_eps=draw(fact(st.floats(1e-12, 1e-2))),
        rope=draw(fact(ropes)),
        max_position_embeddings=draw(fact(st.none() | SMALL)),
        norm_before_residual=draw(fact(flags)),
        feedback=draw(fact(st.sampled_from(feedbacks))),
        vocab_size=declared(vocab, "test"),
        draft_vocab_size=declared(draft_vocab, "test"),
        vocab_map=declared(vocab_map, "test"),
        vocab_order=declared(VocabOrder.SORTED if mapped else None, "test"),
        embedding=declared(embedding, "test"),
        head=draw(fact(st.sampled_from(heads))),
        target_name=draw(fact(target_name)),
    )
