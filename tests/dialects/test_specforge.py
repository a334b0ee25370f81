"""Reading flat configs: SpecForge's, EAGLE's, ModelOpt's, and what was flattened."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dialects.flat_drafter import D2T, FLAT, INNER, OUTER, shapes, without

from eyas import dialects
from eyas.dialects import specforge
from eyas.errors import CheckpointError, ConversionError
from eyas.spec import (
    DefaultBoundaries,
    Eagle3Spec,
    Fact,
    Feedback,
    Fused,
    LastState,
    Mha,
    Mla,
    Origin,
    Ownership,
    Recognised,
    Rope,
    declared,
)


def read(build: Any, config: dict[str, Any], tensors: Any = None, **maps: list[int]) -> Eagle3Spec:
    checkpoint = build(config, shapes() if tensors is None else tensors, **(maps or {"d2t": D2T}))
    dialect, spec = dialects.read(checkpoint)
    assert dialect.name == "specforge"
    assert isinstance(spec, Eagle3Spec)
    return spec


def fused(spec: Eagle3Spec) -> Fused:
    assert isinstance(spec.conditioning, Fused)
    return spec.conditioning


def test_declared_facts_name_their_key(build: Any) -> None:
    spec = read(build, FLAT)

    assert spec.hidden_size == declared(8, "config.json :: hidden_size")
    assert spec.rms_norm_eps == declared(1e-5, "config.json :: rms_norm_eps")
    assert spec.rope == declared(Rope(theta=500000.0, kind="default"), "config.json :: rope_theta")
    assert spec.num_layers.origin is Origin.INFERRED
    assert spec.num_layers.key == "model.safetensors :: midlayer.*"
    assert spec.head == Fact(
        value=Ownership.OWN, origin=Origin.INFERRED, key="model.safetensors :: lm_head.weight"
    )


def test_absent_facts_say_whose_default_fills_them(build: Any) -> None:
    spec = read(build, without("rope_theta"))

    assert spec.rope.value.theta == 10000.0
    assert (spec.rope.origin, spec.rope.key) == (Origin.ASSUMED, "config.json :: rope_theta")
    assert spec.rope.whose == "EAGLE's cnets.py"
    boundaries = fused(spec).boundaries
    assert boundaries.value == DefaultBoundaries()
    assert boundaries.key == "config.json :: eagle_config.eagle_aux_hidden_state_layer_ids"
    assert boundaries.whose == "SpecForge 0.2.0's LlamaForCausalLMEagle3"
    assert spec.norm_before_residual.value is False
    assert spec.norm_before_residual.origin is Origin.ASSUMED
    assert spec.feedback.value is Feedback.PRE_NORM
    assert spec.max_position_embeddings.origin is Origin.ABSENT
    assert spec.max_position_embeddings.value is None
    assert spec.target_name.value is None


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 5, 8]}}, (2, 6, 9)),
        ({"eagle_aux_hidden_state_layer_ids": [2, 6, 9]}, (2, 6, 9)),
        ({"target_layer_ids": [1, 5, 8]}, (2, 6, 9)),
        (
            {
                "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 5, 8]},
                "eagle_aux_hidden_state_layer_ids": [3, 7, 9],
            },
            (2, 6, 9),
        ),
    ],
)
def test_layer_ids_become_boundaries(build: Any, keys: Any, expected: tuple[int, ...]) -> None:
    assert fused(read(build, FLAT | keys)).boundaries.value == expected


@pytest.mark.parametrize(
    ("prefix", "wrapper"),
    [
        ("midlayer.", ""),
        ("layers.0.", ""),
        ("midlayer.", "model."),
        ("layers.0.", "model."),
        ("midlayer.0.", ""),
        ("midlayer.", "module."),
        ("midlayer.", "_orig_mod."),
    ],
)
def test_every_spelling_of_the_layer_has_the_same_roles(
    build: Any, prefix: str, wrapper: str
) -> None:
    checkpoint = build(FLAT, shapes(prefix, wrapper), d2t=D2T)

    roles = specforge.roles(checkpoint)

    expected = {f"layers.0.{name}" for name in INNER} | set(OUTER) | {"d2t"}
    assert set(roles.values()) == expected
    assert roles[f"{wrapper}{prefix}mlp.up_proj.weight"] == "layers.0.mlp.up_proj.weight"


def test_surplus_tensors_have_no_role(build: Any) -> None:
    surplus = {
        "verifier_norm.weight": (8,),
        "model.layers.5.mlp.down_proj.weight": (8, 12),
        "midlayer.self_attn.rotary_emb.inv_freq": (2,),
        "mask_hidden": (1, 1, 24),
        "d2t.weight": (4,),
    }
    checkpoint = build(FLAT, shapes() | surplus, d2t=D2T)

    assert not set(specforge.roles(checkpoint)) & set(surplus)
    assert specforge.read(checkpoint).num_layers.value == 1


def test_a_layer_beside_midlayer_is_the_second(build: Any) -> None:
    second = {f"layers.1.{name}": shape for name, shape in INNER.items()}

    spec = read(build, FLAT | {"num_hidden_layers": 2}, shapes() | second)

    assert spec.num_layers.value == 2


def test_a_wrapped_double_loses_to_the_plain_name(build: Any) -> None:
    checkpoint = build(FLAT, shapes() | {"model.norm.weight": (8,)}, d2t=D2T)

    roles = specforge.roles(checkpoint)

    assert roles["norm.weight"] == "norm.weight"
    assert "model.norm.weight" not in roles


def test_fused_projections_have_their_own_roles(build: Any) -> None:
    tensors = shapes()
    for name in ("q", "k", "v"):
        del tensors[f"midlayer.self_attn.{name}_proj.weight"]
    tensors["midlayer.self_attn.qkv_proj.weight"] = (16, 16)

    checkpoint = build(FLAT, tensors, d2t=D2T)

    roles = specforge.roles(checkpoint)
    assert roles["midlayer.self_attn.qkv_proj.weight"] == "layers.0.self_attn.qkv_proj.weight"
    with pytest.raises(ConversionError, match="stored fused"):
        specforge.write(specforge.read(checkpoint), set(roles.values()))


def test_parts_that_are_stored_exist_whatever_the_flags_say(build: Any) -> None:
    extra = {
        "fc.bias": (8,),
        "input_norm.weight": (24,),
        "fc_norm.0.weight": (8,),
        "midlayer.self_attn.q_proj.bias": (8,),
        "midlayer.self_attn.q_norm.weight": (4,),
    }
    spec = read(build, FLAT | {"attention_bias": False, "norm_before_fc": False}, shapes() | extra)

    assert fused(spec).bias.value
    assert fused(spec).input_norm.value
    assert fused(spec).fc_norm.value
    assert isinstance(spec.attention, Mha)
    assert spec.attention.bias.value
    assert spec.attention.qk_norm.value


def test_flags_may_be_nested(build: Any) -> None:
    config = FLAT | {"eagle_config": {"norm_before_fc": True}, "norm_output": True}

    spec = read(build, config)

    assert fused(spec).input_norm == declared(True, "config.json :: eagle_config.norm_before_fc")
    assert spec.feedback.value is Feedback.POST_NORM
    assert (spec.feedback.origin, spec.feedback.key) == (
        Origin.DECLARED,
        "config.json :: norm_output",
    )


def test_norm_output_says_whose_meaning_is_taken(build: Any) -> None:
    stated = read(build, FLAT | {"norm_output": True}).feedback

    assert stated.value is Feedback.POST_NORM
    assert "0.2.0 itself trains with pre-norm feedback" in str(stated.whose)
    assert read(build, FLAT).feedback.whose == "SpecForge 0.2.0's LlamaForCausalLMEagle3"


@pytest.mark.parametrize(
    ("width", "config", "expected"),
    [
        (24, {}, 3),
        (32, {"eagle_aux_hidden_state_layer_ids": [1, 2, 3, 4]}, 4),
        (48, {"target_hidden_size": 16}, 3),
        (24, {"eagle_aux_hidden_state_layer_ids": [1, 2, 3, 4]}, 3),
        (None, {"eagle_aux_hidden_state_layer_ids": [1, 2, 3, 4]}, 4),
        (None, {"num_aux_hidden_states": 5}, 5),
        (None, {}, 3),
    ],
)
def test_the_number_of_states(build: Any, width: int | None, config: Any, expected: int) -> None:
    tensors = shapes()
    del tensors["fc.weight"]
    if width is not None:
        tensors["fc.weight"] = (8, width)

    assert fused(read(build, FLAT | config, tensors)).count.value == expected


def test_without_fc_and_without_captured_states_the_last_state_is_used(build: Any) -> None:
    tensors = shapes()
    config = FLAT | {"eagle_config": {"use_aux_hidden_state": False}}
    assert isinstance(read(build, config, tensors).conditioning, Fused)

    del tensors["fc.weight"]
    spec = read(build, config, tensors)

    assert isinstance(spec.conditioning, LastState)
    assert spec.conditioning.reason.key == "config.json :: eagle_config.use_aux_hidden_state"


def test_the_head(build: Any) -> None:
    headless = {name: shape for name, shape in shapes().items() if name != "lm_head.weight"}
    embedded = headless | {"embed_tokens.weight": (20, 8)}
    full = FLAT | {"draft_vocab_size": None}

    assert specforge.read(build(full, headless)).head.value is Ownership.TARGET
    assert read(build, full | {"tie_word_embeddings": True}, embedded).head.value is Ownership.TIED
    lost = read(build, FLAT, headless)
    assert lost.head.value is Ownership.OWN
    with pytest.raises(ConversionError, match=r"no tensor for lm_head\.weight"):
        specforge.write(lost, {"fc.weight", "d2t"})


def test_sizes_come_from_shapes_where_the_config_is_silent(build: Any) -> None:
    config = without(
        "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"
    )

    spec = read(build, config)

    assert spec.hidden_size.value == 8
    assert spec.intermediate_size.value == 12
    assert isinstance(spec.attention, Mha)
    assert (spec.attention.num_heads.value, spec.attention.num_kv_heads.value) == (2, 1)
    assert spec.attention.num_heads.origin is Origin.INFERRED


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (("num_attention_heads", "head_dim"), "num_attention_heads is missing"),
        (("vocab_size",), "vocab_size is missing"),
    ],
)
def test_a_size_that_nothing_tells_is_an_error(
    build: Any, missing: tuple[str, ...], message: str
) -> None:
    with pytest.raises(CheckpointError, match=message):
        read(build, without(*missing))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_size", "8"),
        ("hidden_size", 0),
        ("hidden_size", -8),
        ("hidden_size", True),
        ("num_attention_heads", 0),
        ("rms_norm_eps", "small"),
        ("rope_theta", [1]),
        ("rope_theta", "1e6"),
        ("rope_scaling", "linear"),
        ("eagle_config", [1, 2]),
        ("eagle_aux_hidden_state_layer_ids", [1, "2", 3]),
        ("eagle_aux_hidden_state_layer_ids", 3),
        ("norm_before_residual", "yes"),
        ("hidden_act", 7),
    ],
)
def test_a_value_of_the_wrong_type_is_named(build: Any, key: str, value: object) -> None:
    with pytest.raises(CheckpointError, match=f"^config.json :: {key} is "):
        read(build, FLAT | {key: value})


def test_latent_attention(build: Any) -> None:
    config = FLAT | {
        "architectures": ["Eagle3DeepseekV2ForCausalLM"],
        "q_lora_rank": 6,
        "kv_lora_rank": 4,
        "qk_nope_head_dim": 2,
        "qk_rope_head_dim": 2,
        "v_head_dim": 2,
    }
    tensors = {k: v for k, v in shapes().items() if "self_attn" not in k} | {
        "midlayer.self_attn.kv_a_proj_with_mqa.weight": (6, 16)
    }

    spec = read(build, config, tensors)

    assert isinstance(spec.attention, Mla)
    assert spec.attention.kv_lora_rank == declared(4, "config.json :: kv_lora_rank")


def test_a_drafter_is_known_by_its_tensors_under_another_name(build: Any) -> None:
    config = FLAT | {"architectures": ["LlamaForCausalLM"]}

    checkpoint = build(config, shapes(), d2t=D2T)

    assert specforge.recognise(checkpoint) == "it has midlayer.hidden_norm.weight and fc.weight"
    assert dialects.recognise(checkpoint).name == "eagle"
    assert specforge.read(checkpoint).hidden_size.value == 8


def test_what_cannot_be_stated_is_refused(build: Any) -> None:
    spec = read(build, FLAT | {"eagle_aux_hidden_state_layer_ids": [0, 6, 9]})
    present = {"fc.weight", "lm_head.weight", "d2t"}
    with pytest.raises(ConversionError, match="boundary 0"):
        specforge.write(spec, present)
    config, _ = specforge.write(spec, present, ids="top")
    assert config["eagle_aux_hidden_state_layer_ids"] == [0, 6, 9]

    with pytest.raises(ConversionError, match="no tensor for d2t"):
        specforge.write(spec, present - {"d2t"}, ids="top")
    absolute = read(build, FLAT, d2t=[0, 5, 10, 19])
    with pytest.raises(ConversionError, match="absolute ids"):
        specforge.write(absolute, present)
    normed = read(build, FLAT, shapes() | {"midlayer.self_attn.q_norm.weight": (4,)})
    with pytest.raises(ConversionError, match="no norms on q and k"):
        specforge.write(normed, present)
    second = {f"layers.1.{name}": shape for name, shape in INNER.items()}
    deep = read(build, FLAT, shapes() | second)
    with pytest.raises(ConversionError, match="one decoder layer, and this drafter has 2"):
        specforge.write(deep, present)
    with pytest.raises(ConversionError, match="a DFlash drafter cannot be written"):
        specforge.write(Recognised(name="DFlash", why="", lacks=""), present)
