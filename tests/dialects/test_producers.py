"""The flat dialects: what each is known by, what its ids mean, and whose defaults it takes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dialects.flat_drafter import D2T, FLAT, INNER, Shapes, shapes, without

from eyas import dialects
from eyas.spec import DefaultBoundaries, Eagle3Spec, Fused, LaterNorm, Origin

HEAD, EMBEDDING = {"lm_head.weight": (4, 8)}, {"embed_tokens.weight": (20, 8)}
FULL_HEAD = {"lm_head.weight": (20, 8)}
FULL = FLAT | {"draft_vocab_size": 20}
MAP = {"d2t": D2T}
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
    prefix: str, inner: Shapes = INNER, *, wrapper: str = "", more: Shapes | None = None
) -> Shapes:
    """The tensors without the head, which has no wrapper in any form, and with `more`."""
    tensors = shapes(prefix, wrapper, inner)
    del tensors[f"{wrapper}lm_head.weight"]
    return tensors | (more or {})


def with_template(base: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return base | {"eagle_config": TEMPLATE | keys}


CASES = {
    # name: (config, tensors, maps, dialect, a word of the reason)
    "EAGLE by a target's class": (
        FLAT | {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 40},
        named("midlayer.", more=HEAD),
        MAP,
        "eagle",
        "a target's class, LlamaForCausalLM",
    ),
    "EAGLE without a class": (
        without("architectures"),
        named("midlayer.", more=HEAD),
        MAP,
        "eagle",
        "names no class",
    ),
    "a target's class over layers.0": (
        FLAT | {"architectures": ["LlamaForCausalLM"]},
        named("layers.0.", more=HEAD),
        MAP,
        "specforge",
        "it has layers.0.hidden_norm.weight",
    ),
    "SpecForge": (FLAT, named("midlayer.", more=HEAD), MAP, "specforge", "LlamaForCausalLMEagle3"),
    "AngelSlim by its class": (
        FLAT | {"architectures": ["Eagle3LlamaForCausalLM"]},
        named("midlayer.", more=HEAD),
        MAP,
        "angelslim",
        "Eagle3LlamaForCausalLM",
    ),
    "AngelSlim by its key": (
        FLAT | {"aux_hidden_states_layer_ids": [1, 5, 8]},
        named("midlayer.", more=HEAD),
        MAP,
        "angelslim",
        "aux_hidden_states_layer_ids",
    ),
    "vLLM's class of that name": (
        FLAT | {"architectures": ["Eagle3LlamaForCausalLM"]},
        named("layers.0.", more=HEAD),
        MAP,
        "specforge",
        "Eagle3LlamaForCausalLM",
    ),
    "ModelOpt from Hugging Face": (
        with_template(FLAT),
        named("layers.0.", more=HEAD),
        MAP,
        "modelopt",
        "the Hugging Face export",
    ),
    "ModelOpt from Megatron": (
        with_template(FLAT),
        named("midlayer.", more=HEAD | EMBEDDING),
        MAP,
        "modelopt",
        "the Megatron export",
    ),
    "TorchSpec by its version": (
        FLAT | {"_torchspec_version": "0.2.0"},
        named("midlayer.", more=HEAD),
        MAP,
        "torchspec",
        "_torchspec_version",
    ),
    "TorchSpec by its layout": (
        FULL,
        named("layers.0.", more=FULL_HEAD | EMBEDDING),
        {},
        "torchspec",
        "an own embedding and no maps",
    ),
    "TorchSpec, latent": (
        with_template(LATENT),
        named("layers.0.", LATENT_INNER, more=FULL_HEAD | EMBEDDING),
        {},
        "torchspec",
        "the MLA recipe's",
    ),
    "ModelOpt, latent": (
        with_template(LATENT),
        named("layers.0.", LATENT_INNER, more=FULL_HEAD),
        {},
        "modelopt",
        "use_input_layernorm_in_first_layer",
    ),
    "Automodel by its class": (
        FLAT | {"architectures": ["LlamaEagle3DraftModel"]},
        named("layers.0.", wrapper="model.", more=HEAD),
        MAP,
        "automodel",
        "LlamaEagle3DraftModel",
    ),
    "Automodel by its prefix": (
        without("architectures"),
        named("layers.0.", wrapper="model.", more=HEAD),
        MAP,
        "automodel",
        "model.fc.weight",
    ),
    "DeepSpec": (
        FULL | {"architectures": ["Qwen3Eagle3Model"], "target_layer_ids": [1, 5, 8]},
        named("layers.0.", more=FULL_HEAD | EMBEDDING),
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
    tensors = named(prefix, LATENT_INNER, more=FULL_HEAD | EMBEDDING)

    dialect, spec = dialects.read(build(config, tensors))

    assert dialect.name == "torchspec"
    assert isinstance(spec, Eagle3Spec)
    assert isinstance(spec.conditioning, Fused)
    assert spec.conditioning.boundaries.value == expected


def test_megatron_calls_hidden_norm_in_later_layers(build: Any) -> None:
    second = {f"midlayer.1.{name}": shape for name, shape in INNER.items() if name[:5] != "input"}
    config = with_template(FLAT, next_layer_regular=True) | {"num_hidden_layers": 2}

    dialect, spec = dialects.read(build(config, named("midlayer.0.", more=HEAD | second), **MAP))

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
