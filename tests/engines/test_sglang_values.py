"""SGLang: values of a wrong type and RoPE tables that its parser refuses, as its probe saw them."""

from typing import Any

import pytest
from tests.engines.drafters import flat_config, shapes
from tests.engines.sglang import outcome, served

from eyas.spec import Fate, NotChecked, Stage

NEW, MIDDLE, OLD = "0.5.23", "0.5.11", "0.5.8"


def stage(version: str, config: dict[str, Any], **facts: Any) -> Stage | None:
    refusal = served(version, config, shapes(), **facts).refusal
    return None if refusal is None else refusal.stage


def with_null(key: str) -> dict[str, Any]:
    return flat_config() | {key: None}


@pytest.mark.parametrize(
    ("key", "new", "old"),
    [
        ("hidden_size", Stage.CONFIG, Stage.CONFIG),
        ("num_attention_heads", Stage.CONFIG, Stage.CONFIG),
        ("intermediate_size", Stage.CONFIG, Stage.CONSTRUCT),
        ("vocab_size", Stage.CONFIG, Stage.CONSTRUCT),
        ("max_position_embeddings", Stage.CONFIG, Stage.CONSTRUCT),
        ("hidden_act", Stage.CONFIG, Stage.CONSTRUCT),
        ("rope_theta", Stage.CONSTRUCT, Stage.CONSTRUCT),
        ("head_dim", None, None),
        ("quantization_config", None, Stage.CONFIG),
    ],
)
def test_null_is_no_default(key: str, new: Stage | None, old: Stage | None) -> None:
    config = with_null(key)
    assert stage(NEW, config) == stage(MIDDLE, config) == new
    assert stage(OLD, config) == old


@pytest.mark.parametrize(
    ("change", "new", "old"),
    [
        ({"hidden_size": "16"}, Stage.CONFIG, Stage.CONFIG),
        ({"max_position_embeddings": "far"}, Stage.CONFIG, Stage.CONFIG),
        ({"num_attention_heads": 0}, Stage.CONFIG, Stage.CONFIG),
        ({"num_attention_heads": 3}, Stage.CONFIG, None),
        ({"rms_norm_eps": 1}, Stage.CONFIG, None),
        ({"tie_word_embeddings": 0}, Stage.CONFIG, None),
        ({"torch_dtype": "wide"}, Stage.CONFIG, Stage.CONFIG),
        ({"eagle_config": "none"}, Stage.CONSTRUCT, None),
    ],
)
def test_types_are_asked_for_from_0_5_11_on(
    change: dict[str, Any], new: Stage | None, old: Stage | None
) -> None:
    assert stage(NEW, flat_config(**change)) == new
    assert stage(OLD, flat_config(**change)) == old


@pytest.mark.parametrize("version", [NEW, OLD])
@pytest.mark.parametrize("change", [{"num_hidden_layers": True}, {"vocab_size": -1}])
def test_what_python_computes_with_is_no_pass(version: str, change: dict[str, Any]) -> None:
    result = outcome(version, flat_config(**change), shapes())
    new_type = version == NEW and True in change.values()
    assert isinstance(result, NotChecked) != new_type


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LENGTH = {"original_max_position_embeddings": 64}


@pytest.mark.parametrize(
    ("scaling", "new", "old"),
    [
        ({"rope_type": "linear", "factor": 2.0}, None, None),
        ({"rope_type": "linear"}, Stage.CONFIG, Stage.CONFIG),
        ({"rope_type": "yarn", "factor": 2.0}, None, Stage.CONSTRUCT),
        ({"rope_type": "yarn", "factor": 2.0} | LENGTH, None, None),
        ({"rope_type": "yarn"}, Stage.CONFIG, Stage.CONFIG),
        ({"rope_type": "llama3"} | LLAMA3, None, Stage.CONFIG),
        ({"rope_type": "llama3"} | LLAMA3 | LENGTH, None, None),
        ({"rope_type": "longrope", "factor": 2.0}, Stage.CONFIG, Stage.CONFIG),
        ({"rope_type": "mrope"}, Stage.CONSTRUCT, Stage.CONSTRUCT),
        ({"rope_type": "default", "mrope_section": [1, 1]}, None, None),
        ({"rope_type": "su"}, Stage.CONSTRUCT, Stage.CONSTRUCT),
        ({"factor": 2.0}, None, Stage.CONFIG),
        ({}, None, Stage.CONFIG),
    ],
)
def test_a_scaling_needs_its_numbers(
    scaling: dict[str, Any], new: Stage | None, old: Stage | None
) -> None:
    config = flat_config() | {"rope_scaling": scaling}
    assert stage(NEW, config) == new
    assert stage(OLD, config) == old


@pytest.mark.parametrize(
    ("name", "version", "ids", "expected"),
    [
        ("Qwen3MoeForCausalLM", NEW, [1, 5, 11], Stage.JOIN),
        ("Qwen3MoeForCausalLM", NEW, [1, 5, 10], None),
        ("Qwen3MoeForCausalLM", "0.5.4.post1", [1, 5, 11], Stage.FIRST_REQUEST),
        ("Qwen3ForCausalLM", NEW, [1, 5, 11], Stage.FIRST_REQUEST),
    ],
)
def test_some_targets_mark_their_layers(
    name: str, version: str, ids: list[int], expected: Stage | None
) -> None:
    config = flat_config(eagle_config={"eagle_aux_hidden_state_layer_ids": ids})
    found = stage(version, config, architecture=name)
    assert found == expected


def test_of_two_maps_the_last_is_taken() -> None:
    tensors = {"a.d2t": (40,), **shapes()}
    landing = served(NEW, flat_config(), tensors).landing
    fates = {t.name: t.fate for t in landing.tensors if "d2t" in t.name}
    assert fates == {"a.d2t": Fate.LOST, "d2t": Fate.CONSUMED}


def test_the_latent_widths_are_read_while_parsing() -> None:
    config = flat_config(architectures=["Eagle3DeepseekV2ForCausalLM"])
    assert stage(NEW, config) is Stage.CONFIG
    assert stage("0.5.11", config) is Stage.CONSTRUCT
