"""vLLM's Qwen3 and EAGLE-1 classes, and its targets."""

from __future__ import annotations

import pytest
from tests.engines.drafters import (
    HEADS,
    KV,
    VD,
    D,
    H,
    V,
    drafter,
    flat_config,
    qwen3_shapes,
    shapes,
    speculators_config,
    target,
)
from tests.engines.vllm import served_by_v1 as served

from eyas.engines import EngineRef, Launch, read
from eyas.spec import Mha, NotChecked, Recognised, Served, Stage

QWEN3 = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}


def eagle1_shapes() -> dict[str, tuple[int, ...]]:
    layer = "layers.0."
    kept = {k: v for k, v in shapes("layers.0").items() if "mlp" in k or "o_proj" in k}
    return kept | {
        "fc.weight": (H, 2 * H),
        f"{layer}self_attn.q_proj.weight": (HEADS * D, H),
        f"{layer}self_attn.k_proj.weight": (KV * D, H),
        f"{layer}self_attn.v_proj.weight": (KV * D, H),
        f"{layer}post_attention_layernorm.weight": (H,),
    }


def test_qwen3_norms_queries_and_keys() -> None:
    result = served(flat_config(**QWEN3), qwen3_shapes())
    assert result.refusal is None
    assert result.landing.unfilled == ()
    assert isinstance(result.spec.attention, Mha)
    assert result.spec.attention.qk_norm.value
    without = served(flat_config(**QWEN3), shapes("layers.0")).landing.unfilled
    assert [p.name.rpartition(".self_attn.")[2] for p in without] == [
        "q_norm.weight",
        "k_norm.weight",
    ]


def test_the_llama_class_refuses_query_norms() -> None:
    assert served(flat_config(), qwen3_shapes()).refusal.stage is Stage.LOAD


def test_a_nested_qwen3_layer_is_built_as_qwen3() -> None:
    layer = flat_config(architectures=None, draft_vocab_size=None, model_type="qwen3")
    result = served(speculators_config(transformer_layer_config=layer), qwen3_shapes())
    assert result.landing.lost == ()
    assert result.spec.attention.qk_norm.value


def test_qwen3_sizes_fc_from_the_top_level_ids() -> None:
    four = flat_config(**QWEN3, eagle_aux_hidden_state_layer_ids=[1, 3, 6, 8])
    wide = qwen3_shapes() | {"fc.weight": (H, 4 * H)}
    assert served(four, wide).refusal is None
    assert served(four | {"num_aux_hidden_states": 3}, wide).refusal.stage is Stage.LOAD
    assert served(four | {"num_aux_layers": 4, "num_aux_hidden_states": 3}, wide).refusal is None


def test_qwen3_has_a_theta_of_its_own_where_nothing_fills_one_in() -> None:
    layer = flat_config(
        architectures=None, draft_vocab_size=None, rope_theta=None, model_type="qwen3"
    )
    nested = served(speculators_config(transformer_layer_config=layer), qwen3_shapes())
    assert nested.spec.rope.value.theta == 1e6
    assert (
        served(flat_config(**QWEN3, rope_theta=None), qwen3_shapes()).spec.rope.value.theta == 1e4
    )


def test_qwen3_has_no_output_bias() -> None:
    result = served(flat_config(**QWEN3, attention_bias=True), qwen3_shapes())
    assert [p.name for p in result.landing.unfilled] == ["model.layers.0.self_attn.qkv_proj.bias"]


def test_an_activation_other_than_silu_is_refused() -> None:
    refusal = served(flat_config(hidden_act="gelu"), shapes()).refusal
    assert refusal.stage is Stage.CONSTRUCT
    assert "hidden_act" in refusal.message


@pytest.mark.parametrize("kind", ["mtp", "xpress", None])
def test_a_speculators_type_that_the_parser_does_not_know_is_refused(kind: str | None) -> None:
    config = speculators_config(speculators_model_type=kind)
    assert served(config, shapes("layers.0")).refusal.stage is Stage.CONFIG


def test_an_eagle1_head_lands_under_method_eagle() -> None:
    config = flat_config(architectures=["LlamaForCausalLM"], draft_vocab_size=None)
    result = served(config, eagle1_shapes(), "method=eagle")
    assert result.refusal is None
    assert isinstance(result.spec, Recognised)
    assert result.landing.lost == ()
    assert result.landing.unfilled == ()
    biased = served(config, eagle1_shapes() | {"fc.bias": (H,)}, "method=eagle")
    assert [t.name for t in biased.landing.lost] == ["fc.bias"]


@pytest.mark.parametrize(
    "name", ["lm_head.weight", "norm.weight", "d2t", "layers.0.input_layernorm.weight"]
)
def test_the_eagle1_class_refuses_what_it_has_no_place_for(name: str) -> None:
    config = flat_config(architectures=["LlamaForCausalLM"], draft_vocab_size=None)
    refusal = served(config, eagle1_shapes() | {name: (H,)}, "method=eagle").refusal
    assert refusal.stage is Stage.LOAD
    assert name in refusal.message


def test_an_eagle1_head_is_refused_under_method_eagle3() -> None:
    config = flat_config(architectures=["LlamaForCausalLM"], draft_vocab_size=None)
    assert served(config, eagle1_shapes()).refusal.stage is Stage.LOAD


def test_a_smaller_drafter_without_an_embedding_differs_by_runner() -> None:
    config = flat_config(target_hidden_size=32)
    tensors = shapes() | {"fc.weight": (H, 96)}
    kept = served(config, tensors, engine="vllm@0.33.0:v1", hidden=32)
    assert kept.refusal is None
    assert [p.name for p in kept.landing.unfilled] == ["model.embed_tokens.weight"]
    shared = served(config, tensors, engine="vllm@0.33.0:v2", hidden=32)
    assert shared.refusal.stage is Stage.FIRST_REQUEST
    assert "embed_tokens" in shared.refusal.message


@pytest.mark.parametrize("runner", ["v1", "v2"])
def test_a_target_that_hands_over_no_states_is_refused(runner: str) -> None:
    engine = f"vllm@0.32.0:{runner}"
    refused = served(flat_config(), shapes(), engine=engine, architecture="MixtralForCausalLM")
    assert refused.refusal.stage is Stage.JOIN
    assert "MixtralForCausalLM" in refused.refusal.message
    # method eagle asks for no captured states
    plain = served(
        speculators_config(),
        shapes("layers.0"),
        "method=eagle",
        engine=engine,
        architecture="MixtralForCausalLM",
    )
    assert plain.refusal is None


def test_what_a_target_can_do_depends_on_the_version() -> None:
    name = "GraniteMoeForCausalLM"
    older = served(flat_config(), shapes(), engine="vllm@0.32.0:v1", architecture=name)
    newer = served(flat_config(), shapes(), engine="vllm@0.33.0:v1", architecture=name)
    assert older.refusal is not None
    assert newer.refusal is None


@pytest.mark.parametrize(
    ("ids", "known"), [([2, 6, 9], True), ([9, 2, 6], False), ([0, 6, 9], False)]
)
def test_a_target_of_the_transformers_backend_has_rules_of_its_own(
    ids: list[int], known: bool
) -> None:
    result = read(
        EngineRef.parse("vllm@0.33.0:v1"),
        drafter(flat_config(eagle_aux_hidden_state_layer_ids=ids), shapes()),
        target=target(architecture="SmolLM3ForCausalLM"),
        launch=Launch(),
    )
    assert isinstance(result, Served) is known


def test_an_unregistered_target_is_not_checked() -> None:
    result = read(
        EngineRef.parse("vllm@0.33.0:v1"),
        drafter(flat_config(), shapes()),
        target=target(architecture="NobodysForCausalLM"),
        launch=Launch(),
    )
    assert isinstance(result, NotChecked)
    assert "NobodysForCausalLM" in result.reason


def test_the_map_is_against_the_vocabulary_of_the_target() -> None:
    tensors = {k: v for k, v in shapes().items() if k not in ("d2t", "t2d")}
    config = flat_config(draft_vocab_size=V)
    assert served(config, tensors | {"lm_head.weight": (V, H)}).landing.unfilled == ()
    assert served(flat_config(), tensors).spec.draft_vocab_size.value == VD


def test_the_qwen3_class_has_claims_of_its_own() -> None:
    claims = served(flat_config(**QWEN3), qwen3_shapes()).claims
    assert any("Qwen3" in claim.text for claim in claims)
