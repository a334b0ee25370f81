"""What transformers and vLLM 0.32.0 were seen to refuse of a config, and of names."""

from typing import Any

import pytest
from tests.engines.drafters import (
    flat_config,
    latent_config,
    latent_shapes,
    qwen3_shapes,
    shapes,
    speculators_config,
)
from tests.engines.vllm import served, tensor

from eyas.spec import Fate, Stage


def nested(**changes: Any) -> dict[str, Any]:
    """A speculators config whose layer is changed; a change to a word removes the key."""
    layer = flat_config(architectures=None, draft_vocab_size=None, rope_theta=None)
    layer |= changes
    kept = {key: value for key, value in layer.items() if value != "absent"}
    return speculators_config(transformer_layer_config=kept)


@pytest.mark.parametrize(
    ("changes", "stage", "words"),
    [
        ({"vocab_size": None}, Stage.CONFIG, "vocab_size is None"),
        ({"hidden_act": None}, Stage.CONFIG, "hidden_act is None"),
        ({"hidden_size": 16.0}, Stage.CONFIG, "hidden_size is 16.0"),
        ({"rms_norm_eps": 1}, Stage.CONFIG, "a number with a point"),
        ({"attention_bias": None}, Stage.CONFIG, "attention_bias is None"),
        ({"num_attention_heads": 3}, Stage.CONFIG, "no multiple of 3"),
        ({"rope_scaling": {"rope_type": "linear"}}, Stage.CONFIG, "lacks factor"),
        ({"rope_theta": None}, Stage.CONSTRUCT, "rope_theta is null"),
        ({"rope_scaling": {"rope_type": "unheard"}}, Stage.CONSTRUCT, "'unheard'"),
        ({"num_key_value_heads": 3}, Stage.CONSTRUCT, "no multiple of 3 key heads"),
        ({"layer_types": ["sliding_attention"]}, Stage.CONSTRUCT, "sliding_window is missing"),
    ],
)
def test_a_flat_config_is_typed(changes: dict[str, Any], stage: Stage, words: str) -> None:
    refusal = served(flat_config() | changes, shapes()).refusal
    assert refusal is not None
    assert refusal.stage is stage
    assert words in refusal.message


def test_a_flat_config_may_leave_open_what_its_class_fills_in() -> None:
    for changes in ({"num_key_value_heads": None, "head_dim": None}, {"rope_parameters": None}):
        config = flat_config(num_attention_heads=2, num_key_value_heads=2, head_dim=8) | changes
        tensors = dict(shapes())
        for part in "qkv":
            tensors[f"midlayer.self_attn.{part}_proj.weight"] = (16, 32)
        assert served(config, tensors).refusal is None
    table = {"rope_type": "default", "rope_theta": 7.0}
    config = flat_config() | {"rope_theta": None, "rope_parameters": table}
    assert served(config, shapes()).spec.rope.value.theta == 7.0


@pytest.mark.parametrize(
    ("changes", "stage", "words"),
    [
        ({"hidden_size": None}, Stage.CONFIG, "hidden_size is null"),
        ({"layer_types": ["full_attention"] * 2}, Stage.CONFIG, "names 2 layers"),
        ({"rope_parameters": {"rope_type": "linear"}}, Stage.CONFIG, "lacks factor"),
        ({"rms_norm_eps": None}, Stage.FIRST_REQUEST, "rms_norm_eps is null"),
        ({"max_position_embeddings": None}, Stage.CONSTRUCT, "is null"),
        ({"rope_theta": None, "rope_scaling": None}, Stage.CONSTRUCT, "rope_theta is null"),
    ],
)
def test_a_speculators_layer_is_read_as_it_is(
    changes: dict[str, Any], stage: Stage, words: str
) -> None:
    refusal = served(nested(**changes), shapes("layers.0")).refusal
    assert refusal is not None
    assert refusal.stage is stage
    assert words in refusal.message


def test_the_qwen3_class_needs_more_of_a_speculators_layer() -> None:
    for name in ("max_position_embeddings", "num_key_value_heads"):
        missing = {name: "absent"}
        refusal = served(nested(model_type="qwen3", **missing), qwen3_shapes()).refusal
        assert refusal.stage is Stage.CONSTRUCT
        assert f"{name} is missing" in refusal.message
    positions = {"max_position_embeddings": "absent"}
    assert served(nested(**positions), shapes("layers.0")).refusal is None


def test_a_speculators_layer_prefers_the_newer_table() -> None:
    tables = {
        "rope_parameters": {"rope_type": "default", "rope_theta": 7.0},
        "rope_scaling": {"rope_type": "default", "rope_theta": 9.0},
    }
    assert served(nested(**tables), shapes("layers.0")).spec.rope.value.theta == 7.0
    both = flat_config() | tables
    assert served(both, shapes()).spec.rope.value.theta == 9.0


def test_a_base_of_its_own_is_the_qwen3_class_s_where_no_table_is_there() -> None:
    bare = nested(model_type="qwen3")
    assert served(bare, qwen3_shapes()).spec.rope.value.theta == 1e6
    empty = nested(model_type="qwen3", rope_scaling=None)
    assert served(empty, qwen3_shapes()).spec.rope.value.theta == 1e4


def test_an_unknown_bias_is_skipped_only_beside_a_module() -> None:
    known = served(flat_config(), {**shapes(), "norm.bias": (16,)})
    assert known.refusal is None
    assert tensor(known, "norm.bias").fate is Fate.LOST
    unknown = served(flat_config(), {**shapes(), "fc_norm.0.bias": (16,)})
    assert unknown.refusal.stage is Stage.LOAD
    assert "fc_norm.0.bias" in unknown.refusal.message


def test_a_drafter_without_a_method_is_loaded_and_then_called_without_states() -> None:
    result = served(flat_config(), shapes(), "method=auto")
    assert result.refusal.stage is Stage.FIRST_REQUEST
    assert result.landing is not None
    wrong = {**shapes(), "another.weight": (1,)}
    assert served(flat_config(), wrong, "method=auto").refusal.stage is Stage.LOAD


def test_a_speculators_drafter_under_dflash_wants_its_masked_slots() -> None:
    plain = served(nested(), shapes("layers.0"), "method=dflash").refusal
    assert plain.stage is Stage.CONSTRUCT
    assert "mask_token_id is missing" in plain.message


def test_linear_rope_of_latent_attention_needs_its_length() -> None:
    scaling = {"rope_type": "linear", "factor": 2.0}
    refusal = served(latent_config(rope_scaling=scaling), latent_shapes()).refusal
    assert refusal.stage is Stage.CONSTRUCT
