"""vLLM's DeepSeek class: latent attention."""

from __future__ import annotations

import pytest
from tests.engines.drafters import KV_RANK, Q_RANK, ROPE, H, latent_config, latent_shapes
from tests.engines.vllm import served_by_v1 as served
from tests.engines.vllm import tensor

from eyas.spec import Fate, FromTensor, Fused, Mla, Origin, Stage, Unfilled


@pytest.mark.parametrize("layer", ["midlayer", "layers.0"])
def test_a_latent_drafter_lands(layer: str) -> None:
    result = served(latent_config(), latent_shapes(layer))
    assert result.refusal is None
    assert result.landing.lost == ()
    assert result.landing.unfilled == ()
    assert isinstance(result.spec.attention, Mla)
    assert result.spec.attention.q_lora_rank.value == Q_RANK
    fused = next(p for p in result.landing.parameters if "fused_qkv_a_proj" in p.name)
    assert [(s.start, s.stop, s.role) for s in fused.segments] == [
        (0, Q_RANK, "layers.0.self_attn.q_a_proj.weight"),
        (Q_RANK, Q_RANK + KV_RANK + ROPE, "layers.0.self_attn.kv_a_proj_with_mqa.weight"),
    ]


def test_half_of_a_fused_pair_stays_and_the_other_is_memory() -> None:
    tensors = latent_shapes()
    del tensors["midlayer.self_attn.q_a_proj.weight"]
    result = served(latent_config(), tensors)
    fused = next(p for p in result.landing.unfilled if "fused_qkv_a_proj" in p.name)
    assert isinstance(fused.segments[0].source, Unfilled)
    assert fused.segments[1].source == FromTensor(
        tensor="midlayer.self_attn.kv_a_proj_with_mqa.weight"
    )


def test_the_latent_class_reads_neither_input_norm_nor_the_mask() -> None:
    for name in ("input_norm.weight", "mask_hidden"):
        refusal = served(latent_config(), latent_shapes() | {name: (3 * H,)}).refusal
        assert refusal.stage is Stage.LOAD
        assert name in refusal.message
    result = served(latent_config(norm_before_fc=True), latent_shapes())
    assert result.spec.conditioning.input_norm.value is False


def test_the_latent_class_has_its_fc_whatever_the_switch_says() -> None:
    config = latent_config(eagle_config={"use_aux_hidden_state": False})
    result = served(config, latent_shapes())
    assert isinstance(result.spec.conditioning, Fused)
    assert tensor(result, "fc.weight").fate is Fate.LANDED
    assert result.refusal.stage is Stage.FIRST_REQUEST
    # The V2 runner of 0.32.0 does not read the switch, so that fc gets what it needs.
    assert served(config, latent_shapes(), engine="vllm@0.32.0:v2").refusal is None


def test_latent_attention_without_a_query_rank_is_refused() -> None:
    config = latent_config() | {"q_lora_rank": None}
    assert served(config, latent_shapes()).refusal.stage is Stage.LOAD


def test_every_scaled_rope_of_latent_attention_is_yarn() -> None:
    scaling = {"type": "linear", "factor": 4.0}
    without = served(latent_config(rope_scaling=scaling), latent_shapes()).refusal
    assert without.stage is Stage.CONSTRUCT
    assert "has no original_max_position_embeddings" in without.message
    scaling["original_max_position_embeddings"] = 64
    assert served(latent_config(rope_scaling=scaling), latent_shapes()).spec.rope.value.kind == (
        "deepseek_yarn"
    )
    assert served(latent_config(), latent_shapes()).spec.rope.value.kind == "default"


@pytest.mark.parametrize("model_type", ["deepseek_v3", "deepseek_v32"])
def test_a_rewritten_model_type_is_refused(model_type: str) -> None:
    config = latent_config() | {"model_type": model_type}
    refusal = served(config, latent_shapes()).refusal
    assert refusal.stage is Stage.CONFIG
    assert "model_type" in refusal.message


def test_the_defaults_are_those_of_the_model_type() -> None:
    config = latent_config() | {"model_type": "kimi_k2"}
    del config["hidden_act"]
    result = served(config, latent_shapes())
    assert (result.spec.activation.value, result.spec.activation.origin) == ("silu", Origin.ASSUMED)
    large = {k: v for k, v in config.items() if k != "num_hidden_layers"}
    assert served(large, latent_shapes()).spec.num_layers.value == 61


def test_the_latent_class_has_claims_of_its_own() -> None:
    claims = served(latent_config(), latent_shapes()).claims
    assert any("latent" in claim.text for claim in claims)
