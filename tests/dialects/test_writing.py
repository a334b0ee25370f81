"""Every dialect that is written: what it writes reads back exactly, or it says why it cannot."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects.drawn import (
    FLAG,
    LAST,
    MLA,
    REDUCED,
    WHOLE,
    drafters,
    fact,
    fused,
    mha,
)
from tests.dialects.drawn_block import block_drafters, block_headers
from tests.dialects.written import DIRECTORIES, exact, exact_or_refused

from eyas.dialects import WRITABLE, named_dialect
from eyas.errors import UsageError
from eyas.spec import (
    DFlashSpec,
    Eagle3Spec,
    Feedback,
    LaterNorm,
    Mha,
    Ownership,
    PEagleSpec,
    Rope,
    declared,
)

OFF = st.just(False)
PLAIN = st.builds(Rope, theta=st.floats(1e3, 1e7), kind=st.just("default"))
STRETCHED = st.builds(
    Rope,
    theta=st.just(10000.0),
    kind=st.sampled_from(["linear", "dynamic"]),
    scaling=st.fixed_dictionaries({"factor": st.floats(1.5, 64)}),
)
LLAMA3 = st.builds(
    Rope,
    theta=st.just(500000.0),
    kind=st.just("llama3"),
    scaling=st.just(
        {
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        }
    ),
)
PRE = (Feedback.PRE_NORM,)
OWN, TARGET = (Ownership.OWN,), (Ownership.TARGET,)
INPUT = (LaterNorm.INPUT_LAYERNORM,)
MAPPED = st.one_of(REDUCED, WHOLE)
OF_EAGLE = {
    "attention": mha(qk_norm=False, bias=OFF),
    "layers": 1,
    "flags": OFF,
    "feedbacks": PRE,
    "own_head": True,
    "one_width": True,
    "vocabularies": MAPPED,
    "ropes": PLAIN | STRETCHED,
}
THREE = {"bias": False, "counts": (3, 3), "norms": OFF}
# What each dialect must be able to say: no drafter of these may be refused.
WITHIN: dict[str, dict[str, Any]] = {
    "eagle": OF_EAGLE | {"conditioning": fused(lowest=1, defaults=True, fc_norms=OFF, **THREE)},
    "angelslim": OF_EAGLE | {"conditioning": fused(lowest=1, fc_norms=OFF, **THREE)},
    "modelopt": OF_EAGLE
    | {
        "attention": st.one_of(mha(qk_norm=False, bias=OFF), MLA),
        "conditioning": fused(lowest=1, bias=False, norms=OFF, fc_norms=OFF),
        "layers": 3,
        "later_norms": INPUT,
        "embeddings": TARGET,
    },
    "torchspec": OF_EAGLE
    | {
        "conditioning": fused(lowest=1, **THREE),
        "attention": st.one_of(mha(qk_norm=False, bias=OFF), MLA),
        "feedbacks": tuple(Feedback),
        "embeddings": OWN,
        "one_width": False,
        "ropes": PLAIN | STRETCHED | LLAMA3,
    },
    "automodel": OF_EAGLE
    | {
        "conditioning": fused(lowest=1, defaults=True, **THREE),
        "feedbacks": tuple(Feedback),
        "embeddings": OWN,
        "one_width": False,
        "ropes": PLAIN | LLAMA3,
    },
    "deepspec": OF_EAGLE
    | {
        "attention": mha(qk_norm=True, bias=OFF, always=True),
        "conditioning": fused(
            lowest=1, bias=False, counts=(5, 5), defaults=False, norms=OFF, fc_norms=OFF
        ),
        "embeddings": OWN,
        "vocabularies": WHOLE,
    },
}
WILD = drafters(
    attention=st.one_of(mha(qk_norm=True), MLA),
    conditioning=st.one_of(fused(lowest=0, bias=True), LAST),
    layers=3,
    later_norms=tuple(LaterNorm),
    target_name=st.none() | st.just("org/target"),
)
PARALLEL = ("specforge", "speculators", "automodel")
BLOCKS = ("specforge", "speculators", "deepspec", "dflash")
UNPARALLEL = sorted(set(DIRECTORIES) - set(PARALLEL))


def with_output_bias(spec: Eagle3Spec, headers: Any, biased: bool) -> Any:
    """The tensors, with a bias on o_proj too where `biased` and there are others."""
    attention = spec.attention
    if biased and isinstance(attention, Mha) and attention.bias.value:
        shape = (spec.hidden_size.value,)
        more = {f"layers.{i}.self_attn.o_proj.bias" for i in range(spec.num_layers.value)}
        return headers | dict.fromkeys(more, ("BF16", shape))
    return headers


def in_parallel(draw: Any, drafter: Eagle3Spec) -> PEagleSpec:
    numbers = fact(st.none() | st.integers(1, 99))
    return PEagleSpec(
        drafter=drafter,
        mask_token_id=draw(numbers),
        mask_hidden=declared(True, "test"),
        depths=draw(numbers),
    )


def parallel_headers(spec: PEagleSpec, kit: Any) -> Any:
    drafter = spec.drafter
    width = drafter.conditioning.count.value * drafter.target_hidden_size.value  # type: ignore[union-attr]
    return kit.headers_of(drafter) | {"mask_hidden": ("BF16", (1, 1, width))}


@pytest.mark.parametrize("name", WITHIN)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_what_a_dialect_can_say_it_says_exactly(kit: Any, name: str, data: Any) -> None:
    spec = data.draw(
        drafters(**{"target_name": st.none(), "later_norms": tuple(LaterNorm)} | WITHIN[name])
    )

    exact(WRITABLE[name], spec, kit.headers_of(spec), kit.maps_of(spec))


@pytest.mark.parametrize("name", DIRECTORIES)
@settings(max_examples=60, deadline=None)
@given(spec=WILD, biased=FLAG)
def test_any_other_is_exact_or_refused(kit: Any, name: str, spec: Eagle3Spec, biased: bool) -> None:
    headers = with_output_bias(spec, kit.headers_of(spec), biased)

    exact_or_refused(WRITABLE[name], spec, headers, kit.maps_of(spec))


@pytest.mark.parametrize("name", PARALLEL)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_p_eagle_is_said_exactly(kit: Any, name: str, data: Any) -> None:
    ids = {"automodel": True}.get(name)
    drafter = data.draw(
        drafters(
            attention=mha(qk_norm=False, bias=OFF),
            conditioning=fused(lowest=1, defaults=ids, fc_norms=OFF, **THREE),
            layers=3,
            later_norms=INPUT,
            target_name=st.none(),
            ropes=PLAIN,
            flags=OFF if name == "automodel" else FLAG,
            embeddings=OWN,
            own_head=True,
            vocabularies=MAPPED,
        )
    )
    spec = in_parallel(data.draw, drafter)

    exact(WRITABLE[name], spec, parallel_headers(spec, kit), kit.maps_of(drafter))


@pytest.mark.parametrize("name", DIRECTORIES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_other_p_eagle_is_exact_or_refused(kit: Any, name: str, data: Any) -> None:
    drafter = data.draw(
        drafters(
            attention=mha(qk_norm=True),
            conditioning=fused(lowest=0, bias=True),
            layers=3,
            later_norms=tuple(LaterNorm),
            target_name=st.none(),
        )
    )
    spec = in_parallel(data.draw, drafter)
    headers = parallel_headers(spec, kit)

    written = exact_or_refused(WRITABLE[name], spec, headers, kit.maps_of(drafter))

    assert not (written and name in UNPARALLEL)


BLOCK_WITHIN: dict[str, Any] = {
    "dflash": block_drafters(
        causal=("none", "sliding", "all"),
        heads=False,
        anchored=False,
        owns=TARGET,
        reduced=False,
        lowest=1,
        block_sizes=st.integers(1, 32),
        one_width=True,
    ),
    "specforge": block_drafters(
        causal=("none", "sliding", "all"),
        by_markov=True,
        owns=TARGET,
        reduced=False,
        lowest=1,
        one_width=True,
    ),
    "deepspec": block_drafters(
        causal=("none",),
        anchored=True,
        owns=OWN,
        reduced=False,
        sliding=False,
        one_width=True,
    ),
    "speculators": block_drafters(causal=("none", "sliding"), block_sizes=st.integers(1, 32)),
}


@pytest.mark.parametrize("name", BLOCKS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_block_drafters_are_said_exactly(kit: Any, name: str, data: Any) -> None:
    spec = data.draw(BLOCK_WITHIN[name])

    exact(WRITABLE[name], spec, block_headers(spec), kit.maps_of(spec))


@pytest.mark.parametrize("name", DIRECTORIES)
@settings(max_examples=40, deadline=None)
@given(spec=block_drafters())
def test_any_other_block_drafter_is_exact_or_refused(kit: Any, name: str, spec: DFlashSpec) -> None:
    written = exact_or_refused(WRITABLE[name], spec, block_headers(spec), kit.maps_of(spec))

    assert not (written and name not in BLOCKS)


@pytest.mark.parametrize("bias", [True, False])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_bias_on_o_proj_goes_where_attention_has_one(kit: Any, bias: bool, data: Any) -> None:
    ways = WITHIN["automodel"] | {"attention": mha(qk_norm=False, bias=st.just(True))}
    spec = data.draw(drafters(target_name=st.none(), later_norms=INPUT, **ways))
    headers = with_output_bias(spec, kit.headers_of(spec), bias)

    assert exact_or_refused(WRITABLE["automodel"], spec, headers, kit.maps_of(spec)) is bias


def test_the_ways_of_naming_it() -> None:
    assert named_dialect("eagle") is WRITABLE["eagle"]
    with pytest.raises(UsageError, match="'eagle1' is no dialect that eyas writes"):
        named_dialect("eagle1")
    assert [name for name in DIRECTORIES if WRITABLE[name].maps == "d2t"] == ["modelopt"]
    assert not WRITABLE["modelopt"].sorted_map
