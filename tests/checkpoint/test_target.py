"""A target's sizes, from config.json alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eyas.checkpoint import open_target
from eyas.errors import TargetError
from eyas.spec import Rope

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": True,
}


def config_at(path: Path, config: Any) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    return path


def test_a_plain_config(tmp_path: Path) -> None:
    place = config_at(tmp_path / "t", LLAMA)

    facts = open_target(place)

    assert facts.architectures == ("LlamaForCausalLM",)
    assert (facts.hidden_size, facts.num_layers, facts.vocab_size) == (576, 30, 49152)
    assert (facts.num_attention_heads, facts.num_key_value_heads) == (9, 3)
    assert facts.head_dim is None
    assert facts.dtype == "bfloat16"
    assert facts.tie_word_embeddings is True
    assert open_target(place / "config.json").hidden_size == 576


def test_a_wrapper_keeps_its_own_names_and_gives_the_language_models_sizes(tmp_path: Path) -> None:
    wrapper = {
        "architectures": ["KimiK25ForConditionalGeneration"],
        "model_type": "kimi_k25",
        "dtype": "bfloat16",
        "hidden_size": None,
        "text_config": {"model_type": "kimi_k2", "hidden_size": 7168, "num_hidden_layers": 61},
    }

    facts = open_target(config_at(tmp_path / "t", wrapper))

    assert facts.architectures == ("KimiK25ForConditionalGeneration",)
    assert (facts.model_type, facts.text_model_type) == ("kimi_k25", "kimi_k2")
    assert (facts.hidden_size, facts.num_layers) == (7168, 61)
    assert facts.vocab_size is None
    assert facts.dtype == "bfloat16"


def test_wrappers_within_wrappers_and_quantised_weights_are_read_through(tmp_path: Path) -> None:
    thinker = {
        "model_type": "qwen3_omni_moe_thinker",
        "text_config": {**LLAMA, "hidden_size": 2048},
    }
    omni = {
        "architectures": ["Qwen3OmniMoeForConditionalGeneration"],
        "model_type": "qwen3_omni_moe",
        "quantization_config": {"quant_method": "fp8"},
        "thinker_config": thinker,
    }

    facts = open_target(config_at(tmp_path / "t", omni))

    assert (facts.hidden_size, facts.num_layers, facts.vocab_size) == (2048, 30, 49152)
    assert facts.text_model_type == "llama"
    assert facts.architectures == ("Qwen3OmniMoeForConditionalGeneration",)


def test_of_a_target_in_many_shards_the_config_alone_is_read(tmp_path: Path) -> None:
    place = config_at(tmp_path / "t", LLAMA)
    for i in range(1, 65):
        (place / f"model-{i:05}-of-00064.safetensors").write_bytes(b"not a header")
    (place / "model.safetensors.index.json").write_text("not JSON")

    assert open_target(place).num_layers == 30


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"rope_theta": 5e5}, Rope(theta=5e5, kind="default")),
        (
            {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}},
            Rope(theta=5e5, kind="linear", scaling={"factor": 2.0}),
        ),
        (
            {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}},
            Rope(theta=1e4, kind="yarn", scaling={"factor": 4.0}),
        ),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1e6}}, "rope_theta": 1e4}, None),
        ({}, None),
    ],
)
def test_its_rotary_embedding(
    tmp_path: Path, stated: dict[str, object], expected: Rope | None
) -> None:
    assert open_target(config_at(tmp_path / "t", LLAMA | stated)).rope == expected


def test_its_name_is_one_of_the_hub_and_no_path(tmp_path: Path) -> None:
    place = config_at(tmp_path / "t", LLAMA)
    assert open_target(place).name is None
    config_at(tmp_path / "t", {**LLAMA, "_name_or_path": "/models/llama"})
    assert open_target(place).name is None
    config_at(tmp_path / "t", {**LLAMA, "_name_or_path": "org/llama"})
    assert open_target(str(place)).name == "org/llama"


def test_the_embedded_target_is_found_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path))
    with pytest.raises(TargetError) as missing:
        open_target("smollm2")
    assert missing.value.hint == "run: eyas target smollm2"

    config_at(tmp_path / "targets" / "SmolLM2-135M-Instruct", LLAMA)
    assert open_target("smollm2").num_layers == 30


@pytest.mark.parametrize("value", ["576", 5.5, -1, True, [576]])
def test_a_size_that_is_no_number_is_refused(tmp_path: Path, value: object) -> None:
    place = config_at(tmp_path / "t", LLAMA | {"hidden_size": value})

    with pytest.raises(TargetError, match="says hidden_size is"):
        open_target(place)


def test_a_target_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="the target cannot be opened: there is no file"):
        open_target(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TargetError, match=r"config\.json cannot be opened"):
        open_target(tmp_path / "empty")
