"""What a dialect writes, it reads back as the same drafter."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from eyas import dialects
from eyas.checkpoint import open_checkpoint, write_sparse
from eyas.dialects import specforge, speculators
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


@st.composite
def fused(draw: st.DrawFn, *, lowest: int, bias: bool) -> Fused:
    boundaries: Boundaries = DefaultBoundaries()
    if draw(FLAG):
        ids = st.lists(st.integers(lowest, 80), min_size=1, max_size=6, unique=True)
        boundaries = tuple(sorted(draw(ids)))
    count = 3 if isinstance(boundaries, DefaultBoundaries) else len(boundaries)
    return Fused(
        boundaries=declared(boundaries, "test"),
        count=declared(count, "test"),
        input_norm=draw(fact(FLAG)),
        fc_norm=draw(fact(FLAG)),
        bias=draw(fact(FLAG)) if bias else declared(False, "test"),
    )


def mha(*, qk_norm: bool) -> st.SearchStrategy[Mha]:
    norm = fact(FLAG) if qk_norm else fact(st.just(False))
    return st.builds(
        Mha,
        num_heads=fact(SMALL),
        num_kv_heads=fact(SMALL),
        head_dim=fact(SMALL),
        bias=fact(FLAG),
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
) -> Eagle3Spec:
    draft_vocab = draw(st.integers(1, 20))
    num_layers = draw(st.integers(1, layers))
    later_norm = declared(draw(st.sampled_from(later_norms)), "test")
    vocab = draft_vocab * draw(st.integers(1, 3))
    embedding = draw(st.sampled_from([Ownership.OWN, Ownership.TARGET]))
    heads, maps = [Ownership.OWN], [VocabMap.OFFSETS, VocabMap.PREFIX]
    if vocab == draft_vocab:
        maps = [VocabMap.OFFSETS, VocabMap.IDENTITY]
        heads.append(Ownership.TIED if embedding is Ownership.OWN else Ownership.TARGET)
    vocab_map = draw(st.sampled_from(maps))
    mapped = vocab_map is VocabMap.OFFSETS
    return Eagle3Spec(
        hidden_size=draw(fact(st.integers(2, 64))),
        target_hidden_size=draw(fact(st.integers(2, 64))),
        intermediate_size=draw(fact(SMALL)),
        num_layers=declared(num_layers, "test"),
        later_norm=later_norm if num_layers > 1 else absent("test"),
        attention=draw(attention),
        conditioning=draw(conditioning),
        activation=draw(fact(st.sampled_from(["silu", "gelu"]))),
        rms_norm_eps=draw(fact(st.floats(1e-12, 1e-2))),
        rope=draw(fact(ROPES)),
        max_position_embeddings=draw(fact(st.none() | SMALL)),
        norm_before_residual=draw(fact(FLAG)),
        feedback=draw(fact(st.sampled_from(Feedback))),
        vocab_size=declared(vocab, "test"),
        draft_vocab_size=declared(draft_vocab, "test"),
        vocab_map=declared(vocab_map, "test"),
        vocab_order=declared(VocabOrder.SORTED if mapped else None, "test"),
        embedding=declared(embedding, "test"),
        head=draw(fact(st.sampled_from(heads))),
        target_name=draw(fact(target_name)),
    )


def read_back(spec: Eagle3Spec, kit: Any, config: dict[str, Any], names: dict[str, str]) -> Any:
    headers = kit.headers_of(spec)
    with tempfile.TemporaryDirectory() as folder:
        place = write_sparse(
            Path(folder) / "drafter",
            config,
            {names[role]: header for role, header in headers.items()},
            {names[role]: raw for role, raw in kit.maps_of(spec).items()},
        )
        checkpoint = open_checkpoint(place)
        dialect, again = dialects.read(checkpoint)
        roles = {role: name for name, role in dialect.roles(checkpoint).items()}
    assert roles == names
    return dialect.name, kit.values(again)


@settings(max_examples=150, deadline=None)
@given(
    spec=drafters(
        attention=mha(qk_norm=True),
        conditioning=fused(lowest=0, bias=False),
        layers=3,
        later_norms=(LaterNorm.INPUT_LAYERNORM,),
        target_name=st.none() | st.text("abc/-. é", min_size=1),
    )
)
def test_speculators(kit: Any, spec: Eagle3Spec) -> None:
    config, names = speculators.write(spec, kit.headers_of(spec))

    assert read_back(spec, kit, config, names) == ("speculators", kit.values(spec))


@settings(max_examples=150, deadline=None)
@given(
    spec=drafters(
        attention=st.one_of(mha(qk_norm=False), MLA),
        conditioning=st.one_of(fused(lowest=1, bias=True), LAST),
        layers=3,
        later_norms=tuple(LaterNorm),
        target_name=st.none(),
    ),
    ids=st.sampled_from(["nested", "top", "both"]),
    prefix=st.sampled_from(["midlayer.", "layers.0."]),
)
def test_specforge(kit: Any, spec: Eagle3Spec, ids: Any, prefix: Any) -> None:
    if spec.num_layers.value > 1:
        prefix = "layers.0."

    config, names = specforge.write(spec, kit.headers_of(spec), ids=ids, layer_prefix=prefix)

    assert read_back(spec, kit, config, names) == ("specforge", kit.values(spec))
