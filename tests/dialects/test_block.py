"""DFlash and DSpark, in the forms of their four producers."""

from __future__ import annotations

from typing import Any

import pytest

from eyas import dialects
from eyas.errors import CheckpointError
from eyas.spec import (
    DFlashSpec,
    Mha,
    Origin,
    Ownership,
    Recognised,
    Rope,
    VocabMap,
    VocabOrder,
    declared,
)

LAYER: dict[str, Any] = {
    "model_type": "qwen3",
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "vocab_size": 20,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000000,
}
ZLAB = LAYER | {
    "architectures": ["DFlashDraftModel"],
    "auto_map": {"AutoModel": "dflash.DFlashDraftModel"},
    "block_size": 16,
    "dflash_config": {"mask_token_id": 19, "target_layer_ids": [1, 5, 9]},
    "num_target_layers": 12,
    "tie_word_embeddings": True,
}
SPECFORGE = LAYER | {
    "architectures": ["DSparkDraftModel"],
    "block_size": 7,
    "dflash_config": {
        "attention_mode": "gqa",
        "enable_confidence_head": True,
        "confidence_head_with_markov": True,
        "markov_head_type": "gated",
        "markov_rank": 3,
        "mask_token_id": 19,
        "projector_type": "dspark",
        "target_layer_ids": [1, 5, 9],
    },
}
DEEPSPEC = LAYER | {
    "architectures": ["Qwen3DSparkModel"],
    "block_size": 7,
    "enable_confidence_head": True,
    "confidence_head_with_markov": True,
    "layer_types": ["full_attention", "full_attention"],
    "markov_head_type": "vanilla",
    "markov_rank": 3,
    "mask_token_id": 19,
    "num_anchors": 512,
    "target_layer_ids": [1, 5, 9],
    "target_model_name_or_path": "org/target",
}
SPECULATORS = {
    "architectures": ["DFlashDraftModel"],
    "speculators_model_type": "dflash",
    "aux_hidden_state_layer_ids": [2, 6, 10],
    "block_size": 8,
    "draft_vocab_size": 4,
    "mask_token_id": 19,
    "speculators_config": {"algorithm": "dflash", "verifier": {"name_or_path": "org/target"}},
    "transformer_layer_config": LAYER,
}
INNER = {
    "self_attn.q_proj.weight": (8, 8),
    "self_attn.k_proj.weight": (4, 8),
    "self_attn.v_proj.weight": (4, 8),
    "self_attn.o_proj.weight": (8, 8),
    "self_attn.q_norm.weight": (4,),
    "self_attn.k_norm.weight": (4,),
    "mlp.gate_proj.weight": (12, 8),
    "mlp.up_proj.weight": (12, 8),
    "mlp.down_proj.weight": (8, 12),
    "input_layernorm.weight": (8,),
    "post_attention_layernorm.weight": (8,),
}
TRUNK = {f"layers.{i}.{name}": shape for i in range(2) for name, shape in INNER.items()} | {
    "fc.weight": (8, 24),
    "hidden_norm.weight": (8,),
    "norm.weight": (8,),
}
HEADS = {
    "markov_head.markov_w1.weight": (20, 3),
    "markov_head.markov_w2.weight": (20, 3),
    "confidence_head.proj.weight": (1, 11),
    "confidence_head.proj.bias": (1,),
}
OWN = {"embed_tokens.weight": (20, 8), "lm_head.weight": (20, 8)}
REDUCED = {"embed_tokens.weight": (20, 8), "lm_head.weight": (4, 8)}


def read(
    build: Any, dialect: str, config: Any, tensors: Any = TRUNK, **maps: list[int]
) -> DFlashSpec:
    checkpoint = build(config, tensors, **maps)
    found, spec = dialects.read(checkpoint)
    assert found.name == dialect
    assert isinstance(spec, DFlashSpec)
    assert set(found.roles(checkpoint)) == set(checkpoint.tensors)
    assert (
        spec.unjudged
        == f"eyas reads {spec.name} drafters, and has no contract of how engines draft with them"
    )
    return spec


def test_z_lab(build: Any) -> None:
    spec = read(build, "dflash", ZLAB)

    assert spec.name == "DFlash"
    assert spec.boundaries == declared((2, 6, 10), "config.json :: dflash_config.target_layer_ids")
    assert (spec.count.value, spec.num_layers.value) == (3, 2)
    assert isinstance(spec.attention, Mha)
    assert spec.attention.qk_norm.value
    assert spec.block_size == declared(16, "config.json :: block_size")
    assert spec.mask_token_id == declared(19, "config.json :: dflash_config.mask_token_id")
    assert spec.rope.value == Rope(theta=1e7, kind="default")
    # tied, with no embedding to be tied to: both are the target's
    assert (spec.embedding.value, spec.head.value) == (Ownership.TARGET, Ownership.TARGET)
    assert (spec.markov, spec.confidence) == (None, None)
    assert spec.sample_from_anchor.value is False
    assert spec.sample_from_anchor.whose == "z-lab's DFlashDraftModel"
    assert (spec.vocab_map.value, spec.vocab_order.value) == (VocabMap.IDENTITY, None)


def test_the_section_goes_before_the_top(build: Any) -> None:
    nested = ZLAB | {"dflash_config": ZLAB["dflash_config"] | {"block_size": 4}}

    assert read(build, "dflash", nested).block_size.key == (
        "config.json :: dflash_config.block_size"
    )


def test_specforge(build: Any) -> None:
    spec = read(build, "specforge", SPECFORGE, TRUNK | HEADS)

    assert spec.name == "DSpark"
    assert spec.markov is not None
    assert (spec.markov.rank.value, spec.markov.kind.value) == (3, "gated")
    assert spec.confidence is not None
    assert spec.confidence.with_markov.value
    assert spec.boundaries.value == (2, 6, 10)
    assert spec.sample_from_anchor.value is True


def test_early_heads_lie_one_level_down(build: Any) -> None:
    tensors = TRUNK | {f"logit_head.{name}": shape for name, shape in HEADS.items()}

    assert read(build, "specforge", SPECFORGE, tensors).markov is not None


@pytest.mark.parametrize(("rank", "name"), [(3, "DSpark"), (0, "DFlash")])
def test_deepspec_has_one_class_for_both(build: Any, rank: int, name: str) -> None:
    config = DEEPSPEC | {"markov_rank": rank, "enable_confidence_head": bool(rank)}

    spec = read(build, "deepspec", config, TRUNK | OWN | (HEADS if rank else {}))

    assert spec.name == name
    assert spec.boundaries.value == (2, 6, 10)
    assert (spec.embedding.value, spec.head.value) == (Ownership.OWN, Ownership.OWN)
    assert spec.causal_layers.value == frozenset()
    assert spec.target_name.value == "org/target"


def test_deepspec_is_known_by_its_anchors(build: Any) -> None:
    config = {key: value for key, value in DEEPSPEC.items() if key != "architectures"}

    read(build, "deepspec", config, TRUNK | OWN | HEADS)


def test_speculators(build: Any) -> None:
    spec = read(build, "speculators", SPECULATORS, TRUNK | REDUCED, d2t=[0, 4, 8, 12])

    assert spec.boundaries == declared((2, 6, 10), "config.json :: aux_hidden_state_layer_ids")
    assert spec.hidden_size.key == "config.json :: transformer_layer_config.hidden_size"
    assert (spec.draft_vocab_size.value, spec.vocab_size.value) == (4, 20)
    assert (spec.vocab_map.value, spec.vocab_order.value) == (
        VocabMap.OFFSETS,
        VocabOrder.SORTED,
    )
    assert spec.sample_from_anchor.value is False
    assert spec.target_name.value == "org/target"


def test_speculators_dspark_drafts_from_the_anchor_unless_it_says_otherwise(build: Any) -> None:
    config = SPECULATORS | {"speculators_model_type": "dspark"}
    tensors = TRUNK | REDUCED | HEADS | {"markov_head.markov_w2.weight": (4, 3)}

    absent = read(build, "speculators", config, tensors, d2t=[0, 4, 8, 12])
    stated = read(build, "speculators", config | {"sample_from_anchor": False}, tensors)

    assert (absent.sample_from_anchor.value, absent.sample_from_anchor.origin) == (
        True,
        Origin.ASSUMED,
    )
    assert stated.sample_from_anchor == declared(False, "config.json :: sample_from_anchor")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"speculators_model_type": "qwen3"}, "DFlash"),  # the layer's type, as a copy has it
        ({"speculators_model_type": None, "speculators_config": None}, "DFlash"),
    ],
)
def test_the_tensors_tell_where_the_type_does_not(build: Any, keys: Any, expected: str) -> None:
    assert read(build, "speculators", SPECULATORS | keys, TRUNK | REDUCED).name == expected


SLIDING = {
    "layer_types": ["sliding_attention", "full_attention"],
    "sliding_window": 6,
    "use_sliding_window": True,
}


@pytest.mark.parametrize(
    ("keys", "sliding", "causal"),
    [
        ({}, set(), set()),
        (SLIDING, {0}, {0}),
        (SLIDING | {"is_causal": False}, {0}, set()),
        (SLIDING | {"is_causal": True}, {0}, {0, 1}),
        (
            {"sliding_window": 6, "use_sliding_window": True, "max_window_layers": 1},
            {1},
            {1},
        ),
        ({"sliding_window": 6, "use_sliding_window": True}, set(), set()),
    ],
)
def test_which_layers_slide_and_which_are_causal(
    build: Any, keys: dict[str, Any], sliding: set[int], causal: set[int]
) -> None:
    spec = read(build, "dflash", ZLAB | keys)

    assert spec.sliding_layers.value == sliding
    assert spec.causal_layers.value == causal
    assert spec.sliding_window.value == (6 if sliding else None)


@pytest.mark.parametrize(("flag", "causal"), [(None, {0}), (False, {0}), (True, set())])
def test_speculators_says_in_the_negative_which_are_causal(
    build: Any, flag: bool | None, causal: set[int]
) -> None:
    config = SPECULATORS | {"transformer_layer_config": LAYER | SLIDING}
    if flag is not None:
        config["sliding_window_non_causal"] = flag

    spec = read(build, "speculators", config, TRUNK | REDUCED)

    assert spec.causal_layers.value == causal
    assert spec.causal_layers.origin is (Origin.ASSUMED if flag is None else Origin.DECLARED)


def test_without_ids_specforge_spreads_them_over_the_target(build: Any) -> None:
    nested = {k: v for k, v in SPECFORGE["dflash_config"].items() if k != "target_layer_ids"}
    bare = SPECFORGE | {"dflash_config": nested}

    spread = read(build, "specforge", bare | {"num_target_layers": 12}, TRUNK | HEADS)
    unknown = read(build, "specforge", bare, TRUNK | HEADS)

    # states after layers 1 and 9 of 12, the first and the last of the range
    assert (spread.boundaries.value, spread.boundaries.origin) == ((2, 10), Origin.ASSUMED)
    assert (unknown.boundaries.value, unknown.boundaries.origin) == (None, Origin.ABSENT)


def test_z_lab_has_no_default_of_the_ids_and_one_of_the_block(build: Any) -> None:
    bare = {key: value for key, value in ZLAB.items() if key != "block_size"}

    spec = read(build, "dflash", bare | {"dflash_config": {}})

    assert (spec.boundaries.value, spec.boundaries.origin) == (None, Origin.ABSENT)
    assert (spec.mask_token_id.value, spec.count.value) == (None, 3)
    assert (spec.block_size.value, spec.block_size.origin) == (16, Origin.ASSUMED)


def test_another_attention_is_recognised_and_not_judged(build: Any) -> None:
    nested = SPECFORGE["dflash_config"] | {"attention_mode": "mla"}

    dialect, spec = dialects.read(build(SPECFORGE | {"dflash_config": nested}, TRUNK | HEADS))

    assert dialect.name == "specforge"
    assert isinstance(spec, Recognised)
    assert spec.name == "DFlash with mla"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"layer_types": "full"}, "layer_types is no list of kinds"),
        ({"block_size": -1}, "block_size is -1"),
        ({"dflash_config": [1]}, "dflash_config is "),
        ({"dflash_config": {"target_layer_ids": [1, "2"]}}, "target_layer_ids is "),
        ({"is_causal": 1}, "is_causal is 1"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(build: Any, keys: Any, message: str) -> None:
    with pytest.raises(CheckpointError, match=f"^config.json :: .*{message}"):
        dialects.read(build(ZLAB | keys, TRUNK))


def test_a_key_that_is_not_read_is_named(build: Any) -> None:
    scaled = ZLAB | {"dflash_config": ZLAB["dflash_config"] | {"output_multiplier": 0.2}}

    assert dialects.unread_keys(build(ZLAB, TRUNK)) == ()
    assert dialects.unread_keys(build(scaled, TRUNK)) == (
        "config.json :: dflash_config.output_multiplier is 0.2",
    )
