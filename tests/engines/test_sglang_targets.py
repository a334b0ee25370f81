"""Which targets can hand over states, by SGLang version."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engines.drafters import flat_config, shapes
from tests.engines.sglang import served

from eyas.spec import Stage

CASES = [
    ("LlamaForCausalLM", "0.4.9", True),
    ("Qwen2ForCausalLM", "0.5.1", False),
    ("Qwen2ForCausalLM", "0.5.2", True),
    ("DeepseekV3ForCausalLM", "0.5.4", False),
    ("DeepseekV3ForCausalLM", "0.5.4.post3", True),
    ("Glm4vForConditionalGeneration", "0.5.3", True),
    ("Glm4vForConditionalGeneration", "0.5.5", False),
    ("KimiK25ForConditionalGeneration", "0.5.9", False),
    ("KimiK25ForConditionalGeneration", "0.5.10", True),
    ("MiniMaxM3SparseForConditionalGeneration", "0.5.17", False),
    ("MiniMaxM3SparseForConditionalGeneration", "0.5.18", True),
    ("Qwen3OmniMoeForConditionalGeneration", "0.5.23", False),
    ("NobodysForCausalLM", "0.5.23", False),
]


@pytest.mark.parametrize(("architecture", "version", "captures"), CASES)
def test_a_target_captures_or_is_refused(architecture: str, version: str, captures: bool) -> None:
    result = served(version, flat_config(), shapes(), architecture=architecture)
    assert (result.refusal is None) is captures
    if result.refusal is not None:
        assert result.refusal.stage is Stage.JOIN
        assert architecture in result.refusal.message
        assert result.landing is not None  # what the drafter's files come to is known all the same


@pytest.mark.parametrize(
    ("version", "said"), [("0.5.22", "AttributeError"), ("0.5.23", "ValueError")]
)
def test_how_it_is_refused(version: str, said: str) -> None:
    refusal = served(version, flat_config(), shapes(), architecture="Gemma2ForCausalLM").refusal
    assert said in refusal.claim.text


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({}, ("speculative_algorithm=EAGLE",)),
        ({"eagle_config": {"use_aux_hidden_state": False}}, ()),
    ],
)
def test_nothing_is_asked_of_a_target_that_hands_over_one_state(
    changes: dict[str, Any], options: tuple[str, ...]
) -> None:
    config, architecture = flat_config(**changes), "Gemma2ForCausalLM"
    assert served("0.5.23", config, shapes(), *options, architecture=architecture).refusal is None


@pytest.mark.parametrize(
    ("architecture", "version", "captured"),
    [
        ("LlamaForCausalLM", "0.5.23", (3, 6)),
        ("Gemma4ForCausalLM", "0.5.12", (3, 6, 12)),
        ("GptOssForCausalLM", "0.5.16", (3, 6)),
        ("GptOssForCausalLM", "0.5.17", (3, 6, 12)),
    ],
)
def test_who_captures_what_leaves_the_last_layer(
    architecture: str, version: str, captured: tuple[int, ...]
) -> None:
    ids = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 5, 11]}}
    result = served(version, flat_config(**ids), shapes(), architecture=architecture)
    assert result.spec.conditioning.boundaries.value == captured
    complete = len(captured) == 3
    assert (result.refusal is None) is complete
    assert any("ends before what leaves the last one" in c.text for c in result.claims)
