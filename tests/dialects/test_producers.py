"""The flat dialects: what each is known by, what its ids mean, and whose defaults it takes."""

from __future__ import annotations

from typing import Any

import pytest

from eyas import dialects
from eyas.spec import DefaultBoundaries, Eagle3Spec, Fused, LaterNorm, Origin, PEagleSpec

FLAT: dict[str, Any] = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "vocab_size": 20,
    "draft_vocab_size": 4,
    "rms_norm_eps": 1e-5,
}
INNER = {
    "self_attn.q_proj.weight": (8, 16),
    "self_attn.k_proj.weight": (4, 16),
    "self_attn.v_proj.weight": (4, 16),
    "self_attn.o_proj.weight": (8, 8),
    "mlp.gate_proj.weight": (12, 8),
    "mlp.up_proj.weight": (12, 8),
    "mlp.down_proj.weight": (8, 12),
    "input_layernorm.weight": (8,),
    "hidden_norm.weight": (8,),
    "post_attention_layernorm.weight": (8,),
}
OUTER = {"fc.weight": (8, 24), "norm.weight": (8,)}
HEAD, EMBEDDING = {"lm_head.weight": (4, 8)}, {"embed_tokens.weight": (20, 8)}
FULL = FLAT | {"draft_vocab_size": 20}
D2T = {"d2t": [0, 4, 8, 12]}
TEMPLATE = {
    "eagle_aux_hidden_state_layer_ids": [1, 5, 8],
    "use_aux_hidden_state": True,
    "use_input_layernorm_in_first_layer": True,
    "use_last_layernorm": True,
    "use_mtp_layernorm": False,
}
LATENT = FULL | {
    "architectures": ["Eagle3DeepseekV2ForCausalLM"],
    "model_type": "kimi_k2",
    "q_lora_rank": 6,
    "kv_lora_rank": 4,
    "qk_nope_head_dim": 2,
    "qk_rope_head_dim": 2,
    "v_head_dim": 2,
}
LATENT_INNER = {name: shape for name, shape in INNER.items() if "self_attn" not in name} | {
    "self_attn.q_a_proj.weight": (6, 16),
    "self_attn.kv_a_proj_with_mqa.weight": (6, 16),
    "self_attn.kv_a_layernorm.weight": (4,),
}


def named(
    prefix: str, inner: Any = INNER, *, wrapper: str = "", more: Any = None
) -> dict[str, tuple[int, ...]]:
    layer = {wrapper + prefix + name: shape for name, shape in inner.items()}
    return layer | {wrapper + name: shape for name, shape in OUTER.items()} | (more or {})


def with_template(base: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return base | {"eagle_config": TEMPLATE | keys}


CASES = {
    # name: (config, tensors, maps, dialect, a word of the reason)
    "EAGLE by a target's class": (
        FLAT | {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 40},
        named("midlayer.", more=HEAD),
        D2T,
        "eagle",
        "a target's class, LlamaForCausalLM",
    ),
    "EAGLE without a class": (
        {k: v for k, v in FLAT.items() if k != "architectures"},
        named("midlayer.", more=HEAD),
        D2T,
        "eagle",
        "names no class",
    ),
    "a target's class over layers.0": (
        FLAT | {"architectures": ["LlamaForCausalLM"]},
        named("layers.0.", more=HEAD),
        D2T,
        "specforge",
        "it has layers.0.hidden_norm.weight",
    ),
    "SpecForge": (FLAT, named("midlayer.", more=HEAD), D2T, "specforge", "LlamaForCausalLMEagle3"),
    "AngelSlim by its class": (
        FLAT | {"architectures": ["Eagle3LlamaForCausalLM"]},
        named("midlayer.", more=HEAD),
        D2T,
        "angelslim",
        "Eagle3LlamaForCausalLM",
    ),
    "AngelSlim by its key": (
        FLAT | {"aux_hidden_states_layer_ids": [1, 5, 8]},
        named("midlayer.", more=HEAD),
        D2T,
        "angelslim",
        "aux_hidden_states_layer_ids",
    ),
    "vLLM's class of that name": (
        FLAT | {"architectures": ["Eagle3LlamaForCausalLM"]},
        named("layers.0.", more=HEAD),
        D2T,
        "specforge",
        "Eagle3LlamaForCausalLM",
    ),
    "ModelOpt from Hugging Face": (
        with_template(FLAT),
        named("layers.0.", more=HEAD),
        D2T,
        "modelopt",
        "the Hugging Face export",
    ),
    "ModelOpt from Megatron": (
        with_template(FLAT),
        named("midlayer.", more=HEAD | EMBEDDING),
        D2T,
        "modelopt",
        "the Megatron export",
    ),
    "TorchSpec by its version": (
        FLAT | {"_torchspec_version": "0.2.0"},
        named("midlayer.", more=HEAD),
        D2T,
        "torchspec",
        "_torchspec_version",
    ),
    "TorchSpec by its layout": (
        FULL,
        named("layers.0.", more={"lm_head.weight": (20, 8)} | EMBEDDING),
        {},
        "torchspec",
        "an own embedding and no maps",
    ),
    "TorchSpec, latent": (
        with_template(LATENT),
        named("layers.0.", LATENT_INNER, more={"lm_head.weight": (20, 8)} | EMBEDDING),
        {},
        "torchspec",
        "the MLA recipe's",
    ),
    "ModelOpt, latent": (
        with_template(LATENT),
        named("layers.0.", LATENT_INNER, more={"lm_head.weight": (20, 8)}),
        {},
        "modelopt",
        "use_input_layernorm_in_first_layer",
    ),
    "Automodel by its class": (
        FLAT | {"architectures": ["LlamaEagle3DraftModel"]},
        named("layers.0.", wrapper="model.", more=HEAD),
        D2T,
        "automodel",
        "LlamaEagle3DraftModel",
    ),
    "Automodel by its prefix": (
        {k: v for k, v in FLAT.items() if k != "architectures"},
        named("layers.0.", wrapper="model.", more=HEAD),
        D2T,
        "automodel",
        "model.fc.weight",
    ),
    "DeepSpec": (
        FULL | {"architectures": ["Qwen3Eagle3Model"], "target_layer_ids": [1, 5, 8]},
        named("layers.0.", more={"lm_head.weight": (20, 8)} | EMBEDDING),
        {},
        "deepspec",
        "Qwen3Eagle3Model",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_producer_is_told_by_its_marks(build: Any, case: str) -> None:
    config, tensors, maps, dialect, word = CASES[case]
    checkpoint = build(config, tensors, **maps)

    found, spec = dialects.read(checkpoint)

    assert found.name == dialect
    assert word in str(found.recognise(checkpoint))
    assert isinstance(spec, Eagle3Spec)
    assert isinstance(spec.conditioning, Fused)
    expected: Any = DefaultBoundaries()
    if {"eagle_config", "target_layer_ids", "aux_hidden_states_layer_ids"} & set(config):
        expected = (2, 6, 9)
    assert spec.conditioning.boundaries.value == expected
    assert set(found.roles(checkpoint)) == set(checkpoint.tensors)
    assert dialects.unread_keys(checkpoint) == ()


@pytest.mark.parametrize(
    ("ids", "prefix", "expected"),
    [
        ([1, 29, 57], "layers.0.", (2, 30, 58)),  # its recipe's, never shifted
        ([2, 30, 58], "layers.0.", (2, 30, 58)),  # shifted by the export for vLLM
        ([2, 30, 58], "midlayer.", (3, 31, 59)),  # its own names: states after a layer
    ],
)
def test_torchspec_shifts_the_ids_of_kimi_when_it_exports_for_vllm(
    build: Any, ids: list[int], prefix: str, expected: tuple[int, ...]
) -> None:
    config = with_template(LATENT, eagle_aux_hidden_state_layer_ids=ids)
    tensors = named(prefix, LATENT_INNER, more={"lm_head.weight": (20, 8)} | EMBEDDING)

    dialect, spec = dialects.read(build(config, tensors))

    assert dialect.name == "torchspec"
    assert isinstance(spec, Eagle3Spec)
    assert isinstance(spec.conditioning, Fused)
    assert spec.conditioning.boundaries.value == expected


def test_megatron_calls_hidden_norm_in_later_layers(build: Any) -> None:
    second = {f"midlayer.1.{name}": shape for name, shape in INNER.items() if name[:5] != "input"}
    config = with_template(FLAT, next_layer_regular=True) | {"num_hidden_layers": 2}

    dialect, spec = dialects.read(build(config, named("midlayer.0.", more=HEAD | second), **D2T))

    assert dialect.name == "modelopt"
    assert isinstance(spec, Eagle3Spec)
    assert spec.num_layers.value == 2
    assert spec.later_norm.value is LaterNorm.HIDDEN_NORM


def test_deepspec_names_its_target(build: Any) -> None:
    config = CASES["DeepSpec"][0] | {"target_model_name_or_path": "org/target"}

    _, spec = dialects.read(build(config, CASES["DeepSpec"][1]))

    assert isinstance(spec, Eagle3Spec)
    assert spec.target_name.value == "org/target"


def test_an_assumed_value_says_whose_default_it_is(build: Any) -> None:
    whose = set()
    for config, tensors, maps, _, _ in CASES.values():
        _, spec = dialects.read(build(config, tensors, **maps))
        assert isinstance(spec, Eagle3Spec)
        assert spec.norm_before_residual.origin is Origin.ASSUMED
        whose.add(spec.norm_before_residual.whose)
    assert whose == {
        "EAGLE's cnets.py",
        "SpecForge 0.2.0's LlamaForCausalLMEagle3",
        "AngelSlim 0.5.0's Eagle3LlamaForCausalLM",
        "ModelOpt 0.47.0's EagleModule",
        "TorchSpec's LlamaForCausalLMEagle3",
        "Automodel's LlamaEagle3DraftModel",
        "DeepSpec afdfa7c",
    }


MASK = {"mask_hidden": (1, 1, 24)}


@pytest.mark.parametrize(
    ("config", "wrapper", "dialect", "mask", "depths"),
    [
        ({"architectures": ["PEagleDraftModel"]}, "", "specforge", None, None),
        ({"parallel_drafting": True, "ptd_token_id": 19}, "", "specforge", 19, None),
        ({"pard_token": 18}, "", "specforge", 18, None),
        (
            {
                "architectures": ["LlamaEagle3DraftModel"],
                "parallel_drafting": True,
                "mask_token_id": 17,
                "num_depths": 8,
            },
            "model.",
            "automodel",
            17,
            8,
        ),
    ],
)
def test_p_eagle(
    build: Any, config: Any, wrapper: str, dialect: str, mask: int | None, depths: int | None
) -> None:
    checkpoint = build(FLAT | config, named("layers.0.", wrapper=wrapper, more=HEAD | MASK), **D2T)

    found, spec = dialects.read(checkpoint)

    assert found.name == dialect
    assert isinstance(spec, PEagleSpec)
    assert (spec.name, spec.drafter.hidden_size.value) == ("P-EAGLE", 8)
    assert (spec.mask_token_id.value, spec.depths.value) == (mask, depths)
    assert spec.mask_hidden.value
    assert set(found.roles(checkpoint)) == set(checkpoint.tensors)
    assert dialects.unread_keys(checkpoint) == ()


def test_a_mask_state_alone_makes_no_p_eagle(build: Any) -> None:
    dialect, spec = dialects.read(build(FLAT, named("layers.0.", more=HEAD | MASK), **D2T))

    assert dialect.name == "specforge"
    assert isinstance(spec, Eagle3Spec)
