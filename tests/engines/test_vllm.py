from typing import Any

import pytest
from tests.engines.drafters import (
    VD,
    H,
    V,
    flat_config,
    shapes,
    speculators_config,
)
from tests.engines.vllm import outcome, served

from eyas.spec import (
    DefaultBoundaries,
    Fate,
    LastState,
    NotChecked,
    Origin,
    Ownership,
    Stage,
    Unfused,
    VocabMap,
)


@pytest.mark.parametrize("layer", ["midlayer", "layers.0"])
def test_both_names_of_the_layer_land(layer: str) -> None:
    result = served(flat_config(), shapes(layer))
    assert result.refusal is None
    assert result.landing.lost == ()
    assert result.landing.unfilled == ()
    assert result.landing.imbalance() == ()


@pytest.mark.parametrize("name", ["extra.weight", "verifier_lm_head.weight", "d2t.weight"])
def test_an_unknown_name_is_refused(name: str) -> None:
    refusal = served(flat_config(), shapes() | {name: (H,)}).refusal
    assert refusal.stage is Stage.LOAD
    assert name in refusal.message


def test_a_prefixed_checkpoint_is_refused() -> None:
    assert served(flat_config(), shapes(prefix="model.")).refusal.stage is Stage.LOAD


def test_an_unknown_bias_is_lost_without_a_word() -> None:
    landing = served(flat_config(), shapes() | {"fc.bias": (H,)}).landing
    assert [t.name for t in landing.lost] == ["fc.bias"]


def test_speculators_keys_are_found_in_their_nested_place() -> None:
    spec = served(speculators_config(), shapes("layers.0")).spec
    assert spec.hidden_size.key == "config.json :: transformer_layer_config.hidden_size"
    assert spec.draft_vocab_size.key == "config.json :: draft_vocab_size"
    assert spec.conditioning.boundaries.value == (3, 6, 8)


def test_an_absent_norm_before_residual_is_true_in_speculators_and_false_when_flat() -> None:
    nested = served(speculators_config(norm_before_residual=None), shapes("layers.0")).spec
    assert nested.norm_before_residual.value is True
    assert nested.norm_before_residual.origin is Origin.ASSUMED
    assert nested.norm_before_residual.whose == "vllm 0.33.0"
    assert served(flat_config(), shapes()).spec.norm_before_residual.value is False


def test_a_sliding_layer_is_a_fact_with_its_key() -> None:
    assert served(flat_config(), shapes()).slides.origin is Origin.ASSUMED
    assert not served(flat_config(), shapes()).slides.value
    types = {"layer_types": ["sliding_attention"], "sliding_window": 4}
    nested = speculators_config(transformer_layer_config=flat_config(**types))
    slides = served(nested, shapes("layers.0")).slides
    assert (slides.value, slides.origin) == (True, Origin.DECLARED)
    assert slides.key == "config.json :: transformer_layer_config.layer_types"
    assert not served(flat_config(layer_types=["full_attention"]), shapes()).slides.value


def test_types_of_layers_that_the_drafter_does_not_have_are_refused() -> None:
    more = flat_config(layer_types=["full_attention", "sliding_attention"])
    refusal = served(more, shapes()).refusal
    assert refusal is not None
    assert refusal.stage is Stage.CONFIG
    assert "layer_types names 2 layers, and num_hidden_layers is 1" in refusal.message


def test_a_speculators_config_has_no_defaults() -> None:
    layer = flat_config(architectures=None, draft_vocab_size=None, hidden_act=None)
    refusal = served(speculators_config(transformer_layer_config=layer), shapes("layers.0")).refusal
    assert refusal.stage is Stage.CONSTRUCT
    assert "transformer_layer_config.hidden_act" in refusal.message


def test_the_runner_decides_which_ids_are_read() -> None:
    config = flat_config(eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 5, 8]})
    first = served(config, shapes(), engine="vllm@0.33.0:v1").spec.conditioning
    second = served(config, shapes(), engine="vllm@0.33.0:v2").spec.conditioning
    assert first.boundaries.value == (1, 5, 8)
    assert second.boundaries.value == DefaultBoundaries()


def test_without_a_runner_the_default_is_v2() -> None:
    result = served(flat_config(), shapes(), engine="vllm@0.32.0")
    assert result.runner == "v2"
    assert any("V2 runner" in claim.text for claim in result.claims)


def test_ids_are_sorted_and_duplicates_are_a_state_fewer() -> None:
    config = flat_config(eagle_aux_hidden_state_layer_ids=[8, 3, 6])
    assert served(config, shapes()).spec.conditioning.boundaries.value == (3, 6, 8)
    config = flat_config(eagle_aux_hidden_state_layer_ids=[3, 3, 6])
    assert served(config, shapes()).refusal.stage is Stage.FIRST_REQUEST


def test_top_level_ids_do_not_size_fc() -> None:
    config = flat_config(eagle_aux_hidden_state_layer_ids=[1, 3, 6, 8])
    assert served(config, shapes() | {"fc.weight": (H, 4 * H)}).refusal.stage is Stage.LOAD
    assert served(config, shapes()).refusal.stage is Stage.FIRST_REQUEST


def test_method_eagle_refuses_a_flat_head_and_skips_fc_of_a_speculators_one() -> None:
    assert served(flat_config(), shapes(), "method=eagle").refusal.stage is Stage.CONFIG
    result = served(speculators_config(), shapes("layers.0"), "method=eagle")
    assert result.refusal is None
    assert isinstance(result.spec.conditioning, LastState)


def test_the_path_decides_where_no_method_is_given() -> None:
    refusal = served(flat_config(), shapes(), "method=auto").refusal
    assert refusal.stage is Stage.FIRST_REQUEST
    assert served(speculators_config(), shapes("layers.0"), "method=auto").refusal is None


def test_missing_head_and_embedding_come_from_the_target() -> None:
    tensors = {k: v for k, v in shapes().items() if k != "lm_head.weight"}
    result = served(flat_config(), tensors)
    assert result.spec.head.value is Ownership.TARGET
    assert result.spec.embedding.value is Ownership.TARGET
    assert result.landing.unfilled == ()
    own = served(flat_config(), tensors | {"embed_tokens.weight": (V, H)})
    assert own.spec.embedding.value is Ownership.OWN


def test_a_missing_map_stays_zeros_and_an_unwanted_one_is_refused() -> None:
    tensors = {k: v for k, v in shapes().items() if k != "d2t"}
    result = served(flat_config(), tensors)
    assert result.spec.vocab_map.value is VocabMap.PREFIX
    assert [p.name for p in result.landing.unfilled] == ["draft_id_to_target_id"]
    config = flat_config(draft_vocab_size=V)
    whole = shapes() | {"lm_head.weight": (V, H), "d2t": (V,)}
    assert served(config, whole).refusal.stage is Stage.LOAD
    del whole["d2t"]
    assert served(config, whole).spec.vocab_map.value is VocabMap.IDENTITY


def test_a_short_tensor_is_refused_and_a_long_one_cut() -> None:
    name = "midlayer.mlp.down_proj.weight"
    assert served(flat_config(), shapes() | {name: (H, 8)}).refusal.stage is Stage.LOAD
    landing = served(flat_config(), shapes() | {name: (H, 30)}).landing
    assert next(t for t in landing.tensors if t.name == name).cut == 6 * H


def test_without_states_there_is_no_fc() -> None:
    config = flat_config(eagle_config={"use_aux_hidden_state": False})
    result = served(config, shapes(), engine="vllm@0.32.0:v1")
    assert isinstance(result.spec.conditioning, LastState)
    assert result.spec.conditioning.after_final_norm.value
    assert [t.name for t in result.landing.lost] == ["fc.weight"]
    assert result.refusal is None


def test_the_v2_runner_reads_the_switch_from_0_33_on() -> None:
    config = flat_config(eagle_config={"use_aux_hidden_state": False})
    newer = served(config, shapes(), engine="vllm@0.33.0:v2")
    assert isinstance(newer.spec.conditioning, LastState)
    assert newer.refusal is None
    assert "0.33.0" in {claim.version for claim in newer.claims}


def test_the_v2_runner_captures_states_whether_or_not_there_is_an_fc() -> None:
    config = flat_config(eagle_config={"use_aux_hidden_state": False})
    three = served(config, shapes(), engine="vllm@0.32.0:v2")
    assert three.refusal.stage is Stage.FIRST_REQUEST
    assert "3 states of 16" in three.refusal.message
    one = served(
        config | {"eagle_aux_hidden_state_layer_ids": [7]}, shapes(), engine="vllm@0.32.0:v2"
    )
    assert isinstance(one.spec.conditioning, Unfused)
    assert one.spec.conditioning.boundaries.value == (7,)
    assert one.refusal is None


def test_mask_hidden_is_left_out_with_a_warning() -> None:
    landing = served(flat_config(), shapes() | {"mask_hidden": (1, 1, 3 * H)}).landing
    assert next(t for t in landing.tensors if t.name == "mask_hidden").fate is Fate.IGNORED
    assert len(landing.log) == 1


@pytest.mark.parametrize("architecture", ["LlamaForCausalLMEagle", "Eagle3DraftModel"])
def test_an_unregistered_architecture_is_refused(architecture: str) -> None:
    refusal = served(flat_config(architectures=[architecture]), shapes()).refusal
    assert refusal.stage is Stage.CONFIG


@pytest.mark.parametrize(
    "config",
    [
        speculators_config(speculators_model_type="dspark"),
        flat_config(architectures=["DFlash2DraftModel"]),
        flat_config(quantization_config={"quant_method": "fp8"}),
        speculators_config(quantization_config={"quant_method": "fp8"}),
        flat_config(model_type="mistral", hidden_act=None),
    ],
)
def test_what_has_no_contract_is_not_checked(config: dict[str, Any]) -> None:
    assert isinstance(outcome(config, shapes()), NotChecked)


def test_a_version_outside_the_contract_is_not_checked() -> None:
    later = outcome(flat_config(), shapes(), engine="vllm@0.34.0")
    assert isinstance(later, NotChecked)
    assert "0.32.0 to 0.33.0" in later.reason


def test_the_head_has_one_row_for_each_draft_id() -> None:
    landing = served(flat_config(), shapes()).landing
    head = next(p for p in landing.parameters if p.name == "lm_head.weight")
    assert [(s.start, s.stop) for s in head.segments] == [(0, VD), (VD, 64)]
    assert [s.role for s in head.segments] == ["lm_head.weight", None]


def test_every_claim_cites_a_file_and_lines() -> None:
    for claim in served(flat_config(), shapes()).claims:
        assert claim.project == "vllm"
        assert claim.file.endswith(".py")
        assert claim.lines.strip("0123456789-, ") == ""
