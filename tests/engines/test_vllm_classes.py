"""vLLM's classes beside the Llama one: Qwen3, DeepSeek (latent attention), EAGLE-1, P-EAGLE."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engines.drafters import (
    HEADS,
    KV,
    VD,
    D,
    H,
    Shapes,
    V,
    drafter,
    flat_config,
    shapes,
    speculators_config,
    target,
)

from eyas.engines import EngineRef, Launch, read
from eyas.spec import (
    Fate,
    FromTensor,
    Fused,
    Mha,
    Mla,
    NotChecked,
    Origin,
    Recognised,
    Served,
    Stage,
    TensorLanding,
    Unfilled,
)

Q_RANK, KV_RANK, NOPE, ROPE, VALUE = 12, 6, 5, 2, 4
QKV = {"q": HEADS, "k": KV, "v": KV}
QWEN3 = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}


def served(
    config: dict[str, Any],
    tensors: Shapes,
    *options: str,
    engine: str = "vllm@0.33.0:v1",
    **facts: Any,
) -> Served:
    result = read(
        EngineRef.parse(engine),
        drafter(config, tensors),
        target=target(**facts),
        launch=Launch.parse(options),
    )
    assert isinstance(result, Served), result
    if result.landing is not None:
        assert result.landing.imbalance() == ()
    return result


def tensor(result: Served, name: str) -> TensorLanding:
    return next(t for t in result.landing.tensors if t.name == name)


def latent_config(**changes: Any) -> dict[str, Any]:
    return flat_config(
        architectures=["Eagle3DeepseekV2ForCausalLM"],
        model_type="kimi_k2",
        q_lora_rank=Q_RANK,
        kv_lora_rank=KV_RANK,
        qk_nope_head_dim=NOPE,
        qk_rope_head_dim=ROPE,
        v_head_dim=VALUE,
        **changes,
    )


def latent_shapes(layer: str = "midlayer") -> dict[str, tuple[int, ...]]:
    attention = f"{layer}.self_attn."
    plain = ("q_proj", "k_proj", "v_proj", "o_proj")
    kept = {k: v for k, v in shapes(layer).items() if not any(name in k for name in plain)}
    return kept | {
        f"{attention}q_a_proj.weight": (Q_RANK, 2 * H),
        f"{attention}q_a_layernorm.weight": (Q_RANK,),
        f"{attention}q_b_proj.weight": (HEADS * (NOPE + ROPE), Q_RANK),
        f"{attention}kv_a_proj_with_mqa.weight": (KV_RANK + ROPE, 2 * H),
        f"{attention}kv_a_layernorm.weight": (KV_RANK,),
        f"{attention}kv_b_proj.weight": (HEADS * (NOPE + VALUE), KV_RANK),
        f"{attention}o_proj.weight": (H, HEADS * VALUE),
    }


def qwen3_shapes() -> dict[str, tuple[int, ...]]:
    norms = {f"layers.0.self_attn.{key}_norm.weight": (D,) for key in "qk"}
    return shapes("layers.0") | norms


def peagle_config(**changes: Any) -> dict[str, Any]:
    return speculators_config(
        speculators_model_type="peagle",
        mask_token_id=7,
        norm_before_residual=None,
        eagle_aux_hidden_state_layer_ids=None,
        **changes,
    )


def peagle_shapes() -> dict[str, tuple[int, ...]]:
    return shapes("layers.0") | {"mask_hidden": (1, 1, 3 * H)}


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


def test_a_peagle_directory_drafts_in_parallel() -> None:
    result = served(peagle_config(), peagle_shapes(), engine="vllm@0.33.0:v2")
    assert result.refusal is None
    assert result.runner == "v1"  # V2 cannot draft in parallel for eagle3
    assert tensor(result, "mask_hidden").fate is Fate.CONSUMED
    assert result.landing.log == ()
    # absent: false for peagle where it is true for eagle3
    assert result.spec.norm_before_residual.value is False


def test_the_launch_can_switch_parallel_drafting() -> None:
    off = served(peagle_config(), peagle_shapes(), "parallel_drafting=false")
    assert tensor(off, "mask_hidden").fate is Fate.IGNORED
    assert len(off.landing.log) == 1
    flat = flat_config()
    on = served(flat | {"pard_token": 7}, peagle_shapes(), "parallel_drafting=true")
    assert on.refusal is None
    assert served(flat, peagle_shapes(), "parallel_drafting=true").refusal.stage is Stage.CONSTRUCT


def test_the_flat_peagle_architecture_is_looked_up_under_another_name() -> None:
    refusal = served(flat_config(architectures=["PEagleDraftModel"]), peagle_shapes()).refusal
    assert refusal.stage is Stage.CONFIG
    assert "Eagle3PEagleDraftModel" in refusal.message


@pytest.mark.parametrize("mask", [None, (1, 1, 2 * H)])
def test_parallel_drafting_needs_a_mask_as_wide_as_the_input_of_fc(
    mask: tuple[int, ...] | None,
) -> None:
    tensors = peagle_shapes() | ({"mask_hidden": mask} if mask else {})
    if mask is None:
        del tensors["mask_hidden"]
    assert served(peagle_config(), tensors).refusal.stage is Stage.LOAD


def test_a_peagle_config_without_a_mask_token_is_refused() -> None:
    config = peagle_config()
    del config["mask_token_id"]
    assert served(config, peagle_shapes()).refusal.stage is Stage.CONFIG


def test_peagle_takes_the_flags_of_3_1_from_the_nested_config_alone() -> None:
    layer = flat_config(architectures=None, draft_vocab_size=None, norm_output=True)
    nested = served(peagle_config(transformer_layer_config=layer), peagle_shapes())
    top = served(peagle_config(norm_output=True), peagle_shapes())
    assert (nested.spec.feedback.value, top.spec.feedback.value) == ("post-norm", "pre-norm")


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


def dflash_config(**changes: Any) -> dict[str, Any]:
    usual = {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "draft_vocab_size": None,
        "num_hidden_layers": 2,
        "dflash_config": {"mask_token_id": 7, "target_layer_ids": [1, 5, 9]},
    }
    return flat_config(**usual | changes)


def dflash_shapes() -> dict[str, tuple[int, ...]]:
    found = {"fc.weight": (H, 3 * H), "hidden_norm.weight": (H,), "norm.weight": (H,)}
    for index in range(2):
        layer = {n: s for n, s in qwen3_shapes().items() if n.startswith("layers.0.")}
        widths = {f"layers.0.self_attn.{k}_proj.weight": (h * D, H) for k, h in QKV.items()}
        layer = layer | widths
        del layer["layers.0.hidden_norm.weight"]
        found |= {n.replace("layers.0.", f"layers.{index}."): s for n, s in layer.items()}
    return found


@pytest.mark.parametrize("runner", ["v1", "v2"])
def test_a_dflash_drafter_lands_under_its_own_method(runner: str) -> None:
    result = served(dflash_config(), dflash_shapes(), engine=f"vllm@0.33.0:{runner}")
    assert result.refusal is None
    assert result.landing.lost == ()
    # unused unless a file of its own brings it
    assert [p.name for p in result.landing.unfilled] == ["model.mask_embedding"]
    assert isinstance(result.spec, Recognised)


def test_dflash_counts_its_states_by_the_ids() -> None:
    ids = {"dflash_config": {"mask_token_id": 7, "target_layer_ids": [1, 9]}}
    assert served(dflash_config(**ids), dflash_shapes()).refusal.stage is Stage.LOAD
    outside = {"dflash_config": {"mask_token_id": 7, "target_layer_ids": [1, 5, 12]}}
    assert served(dflash_config(**outside), dflash_shapes()).refusal.stage is Stage.FIRST_REQUEST


def test_dflash_needs_a_mask_token() -> None:
    config = dflash_config(dflash_config={"target_layer_ids": [1, 5, 9]})
    assert served(config, dflash_shapes()).refusal.stage is Stage.CONSTRUCT


def test_dflash_mixes_sliding_and_full_layers_on_the_v2_runner_alone() -> None:
    types = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 4}
    assert served(dflash_config(**types), dflash_shapes()).refusal.stage is Stage.CONSTRUCT
    newer = served(dflash_config(**types), dflash_shapes(), engine="vllm@0.33.0:v2")
    assert newer.refusal is None
    no_window = dflash_config(layer_types=["sliding_attention"] * 2)
    assert served(no_window, dflash_shapes()).refusal.stage is Stage.CONSTRUCT


@pytest.mark.parametrize(
    "name", ["mask_hidden", "input_norm.weight", "layers.0.hidden_norm.weight"]
)
def test_dflash_refuses_what_it_has_no_place_for(name: str) -> None:
    refusal = served(dflash_config(), dflash_shapes() | {name: (H,)}).refusal
    assert refusal.stage is Stage.LOAD
    assert name in refusal.message


def test_a_dflash_directory_of_speculators_is_read() -> None:
    layer = dflash_config(architectures=None, dflash_config=None)
    config = speculators_config(
        speculators_model_type="dflash",
        transformer_layer_config=layer,
        aux_hidden_state_layer_ids=[2, 6, 10],
        eagle_aux_hidden_state_layer_ids=None,
        mask_token_id=7,
    )
    own = {"lm_head.weight": (VD, H), "d2t": (VD,), "t2d": (V,), "embed_tokens.weight": (V, H)}
    result = served(config, dflash_shapes() | own)
    assert result.refusal is None
    assert tensor(result, "d2t").fate is Fate.LANDED
    del config["mask_token_id"]
    assert served(config, dflash_shapes() | own).refusal.stage is Stage.CONFIG


def test_dflash_under_another_method_is_refused() -> None:
    refusal = served(dflash_config(), dflash_shapes(), "method=eagle3").refusal
    assert refusal.stage is Stage.CONFIG


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


def test_every_class_has_claims_of_its_own() -> None:
    texts = {
        "Qwen3": served(flat_config(**QWEN3), qwen3_shapes()).claims,
        "latent": served(latent_config(), latent_shapes()).claims,
        "mask_hidden": served(peagle_config(), peagle_shapes()).claims,
    }
    for word, claims in texts.items():
        assert any(word in claim.text for claim in claims), word
