"""Reading speculators' nested config."""

from __future__ import annotations

from typing import Any

import pytest

from eyas import dialects
from eyas.dialects import speculators
from eyas.errors import CheckpointError, ConversionError
from eyas.spec import (
    DefaultBoundaries,
    Eagle3Spec,
    Feedback,
    Fused,
    Mha,
    Origin,
    PEagleSpec,
    Recognised,
    VocabMap,
    declared,
)

LAYER = {
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "vocab_size": 20,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
}
NESTED = {
    "architectures": ["Eagle3DraftModel"],
    "speculators_model_type": "eagle3",
    "draft_vocab_size": 4,
    "eagle_aux_hidden_state_layer_ids": [2, 6, 9],
    "norm_before_residual": True,
    "norm_before_fc": False,
    "fc_norm": False,
    "norm_output": True,
    "target_hidden_size": None,
    "speculators_config": {"algorithm": "eagle3", "verifier": {"name_or_path": "org/target"}},
    "transformer_layer_config": LAYER,
}
SHAPES = {
    "fc.weight": (8, 24),
    "layers.0.hidden_norm.weight": (8,),
    "layers.0.self_attn.q_proj.weight": (8, 16),
    "norm.weight": (8,),
    "lm_head.weight": (4, 8),
    "embed_tokens.weight": (20, 8),
}
D2T = [0, 4, 8, 12]


def read(build: Any, config: dict[str, Any]) -> Eagle3Spec:
    dialect, spec = dialects.read(build(config, SHAPES, d2t=D2T))
    assert dialect.name == "speculators"
    assert isinstance(spec, Eagle3Spec)
    return spec


def test_facts_come_from_both_levels(build: Any) -> None:
    spec = read(build, NESTED)

    assert spec.hidden_size == declared(8, "config.json :: transformer_layer_config.hidden_size")
    assert spec.draft_vocab_size == declared(4, "config.json :: draft_vocab_size")
    assert spec.norm_before_residual == declared(True, "config.json :: norm_before_residual")
    assert spec.feedback.value is Feedback.POST_NORM
    assert spec.vocab_map.value is VocabMap.OFFSETS
    assert spec.target_name == declared(
        "org/target", "config.json :: speculators_config.verifier.name_or_path"
    )
    assert isinstance(spec.conditioning, Fused)
    # speculators' ids are eyas's boundaries
    assert spec.conditioning.boundaries.value == (2, 6, 9)
    assert spec.conditioning.count.value == 3


def test_absent_keys_take_the_classes_defaults(build: Any) -> None:
    config = {
        key: value
        for key, value in NESTED.items()
        if key not in ("norm_before_residual", "eagle_aux_hidden_state_layer_ids", "norm_output")
    }

    spec = read(build, config)

    assert spec.norm_before_residual.value is False
    assert spec.norm_before_residual.origin is Origin.ASSUMED
    assert "its train command writes true" in str(spec.norm_before_residual.whose)
    assert spec.feedback.value is Feedback.PRE_NORM
    assert isinstance(spec.conditioning, Fused)
    assert spec.conditioning.boundaries.value == DefaultBoundaries()


def test_a_qwen3_layer_has_norms_on_q_and_k(build: Any) -> None:
    spec = read(build, NESTED | {"transformer_layer_config": LAYER | {"model_type": "qwen3"}})

    assert isinstance(spec.attention, Mha)
    assert spec.attention.qk_norm.value
    config, _ = speculators.write(spec, {"lm_head.weight", "embed_tokens.weight", "d2t"})
    assert config["transformer_layer_config"]["model_type"] == "qwen3"


def test_half_flattened_is_still_nested(build: Any) -> None:
    config = NESTED | {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama"}

    assert read(build, config).hidden_size.value == 8


@pytest.mark.parametrize("layer", [None, {}, [], "llama"])
def test_a_missing_layer_config_is_an_error(build: Any, layer: object) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json :: transformer_layer_config"):
        read(build, NESTED | {"transformer_layer_config": layer})


def test_what_cannot_be_stated_is_refused(build: Any) -> None:
    checkpoint = build(NESTED, SHAPES | {"fc.bias": (8,)}, d2t=D2T)
    spec = speculators.read(checkpoint)

    with pytest.raises(ConversionError, match="no bias on fc"):
        speculators.write(spec, set(speculators.roles(checkpoint).values()))


def test_the_writer_states_what_vllm_would_guess_otherwise(build: Any) -> None:
    spec = read(build, NESTED)

    config, names = speculators.write(
        spec,
        {"lm_head.weight", "embed_tokens.weight", "d2t", "layers.0.hidden_norm.weight"},
        dtype="bfloat16",
        speculative_tokens=5,
    )

    assert config["norm_before_residual"] is True
    assert config["dtype"] == "bfloat16"
    methods = config["speculators_config"]["proposal_methods"]
    assert methods[0]["speculative_tokens"] == 5
    assert names["layers.0.hidden_norm.weight"] == "layers.0.hidden_norm.weight"


def test_p_eagle(build: Any) -> None:
    config = NESTED | {"speculators_model_type": "peagle", "mask_token_id": 19}
    checkpoint = build(config, SHAPES | {"mask_hidden": (1, 1, 24)}, d2t=D2T)

    dialect, spec = dialects.read(checkpoint)

    assert dialect.name == "speculators"
    assert isinstance(spec, PEagleSpec)
    assert spec.mask_token_id == declared(19, "config.json :: mask_token_id")
    assert spec.mask_hidden.value
    assert spec.depths.value is None
    assert spec.drafter.norm_before_residual.value is True
    assert set(dialect.roles(checkpoint)) == set(checkpoint.tensors)
    with pytest.raises(ConversionError, match="the drafter has no mask_hidden, which speculators"):
        speculators.write(spec, set(SHAPES))


def test_another_type_is_known_by_name(build: Any) -> None:
    checkpoint = build(NESTED | {"speculators_model_type": "quantum"}, SHAPES)

    dialect, spec = dialects.read(checkpoint)

    assert isinstance(spec, Recognised)
    assert spec.name == "quantum"
    assert dialect.roles(checkpoint) == {}
