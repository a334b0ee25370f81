"""Where the Llama EAGLE-3 class changed between versions, each side of the change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engines.drafters import INNER, H, V, drafter, flat_config, shapes
from tests.engines.sglang import outcome, served

from eyas.engines.sglang import SGLANG
from eyas.engines.stop import NotCovered
from eyas.spec import Fused, LastState, NotChecked, Origin, Ownership, Served, Stage


@pytest.mark.parametrize(("version", "read"), [("0.5.16", False), ("0.5.17", True)])
def test_norm_before_fc_is_read_from_0_5_17_on(version: str, read: bool) -> None:
    result = served(version, flat_config(norm_before_fc=True), shapes())
    assert result.spec.conditioning.input_norm.value is read


@pytest.mark.parametrize(
    ("version", "kind"), [("0.4.9", Fused), ("0.5.7", Fused), ("0.5.8", LastState)]
)
def test_use_aux_hidden_state_is_read_from_0_5_8_on(version: str, kind: type) -> None:
    config = flat_config(eagle_config={"use_aux_hidden_state": False})
    assert isinstance(served(version, config, shapes()).spec.conditioning, kind)


@pytest.mark.parametrize(("version", "stage"), [("0.5.1", Stage.CONSTRUCT), ("0.5.2", None)])
def test_a_null_draft_vocab_size_shares_the_head_from_0_5_2_on(
    version: str, stage: Stage | None
) -> None:
    config = flat_config() | {"draft_vocab_size": None}
    result = served(version, config, shapes() | {"lm_head.weight": (V, H)})
    assert (result.refusal and result.refusal.stage) is stage
    if stage is None:
        assert result.spec.head.value is Ownership.TARGET


@pytest.mark.parametrize(("version", "stage"), [("0.5.2", Stage.LOAD), ("0.5.3", None)])
def test_a_short_down_proj_is_completed_with_zeros_from_0_5_3_on(
    version: str, stage: Stage | None
) -> None:
    tensors = shapes() | {"midlayer.mlp.down_proj.weight": (H, 10)}
    refusal = served(version, flat_config(), tensors).refusal
    assert (refusal and refusal.stage) is stage


@pytest.mark.parametrize("version", ["0.4.9", "0.5.4.post3", "0.5.11", "0.5.23"])
def test_another_activation_is_refused(version: str) -> None:
    refusal = served(version, flat_config(hidden_act="gelu"), shapes()).refusal
    assert refusal.stage is Stage.CONSTRUCT
    assert "hidden_act is gelu" in refusal.message


def test_llama_4_has_its_own_key_for_the_inner_width() -> None:
    config = flat_config(
        model_type="llama4_text", intermediate_size=5 * INNER, intermediate_size_mlp=INNER
    )
    result = served("0.5.23", config, shapes())
    assert result.refusal is None
    assert result.spec.intermediate_size.value == INNER
    assert result.landing.unfilled == ()


@pytest.mark.parametrize("version", ["0.5.11", "0.5.12", "0.5.23"])
def test_a_window_is_known_from_0_5_12_on(version: str) -> None:
    result = outcome(version, flat_config(), shapes(), "speculative_draft_window_size=64")
    if version == "0.5.11":
        assert isinstance(result, NotChecked)
        return
    assert isinstance(result, Served)
    assert result.slides is not None
    assert (result.slides.value, result.slides.origin) == (True, Origin.DECLARED)


@pytest.mark.parametrize(
    "changes",
    [
        {"partial_rotary_factor": 0.5},
        {"rope_is_neox_style": False},
        {"rope_parameters": {"rope_theta": 5000.0, "partial_rotary_factor": 0.5}},
    ],
)
def test_a_rope_that_no_spec_can_say_is_not_checked(changes: dict[str, Any]) -> None:
    assert isinstance(outcome("0.5.23", flat_config(**changes), shapes()), NotChecked)


def test_a_rope_of_ones_is_read() -> None:
    config = flat_config(partial_rotary_factor=1.0, rope_is_neox_style=True)
    assert served("0.5.23", config, shapes()).refusal is None


LENGTH = {"original_max_position_embeddings": 64}


@pytest.mark.parametrize(("version", "kind"), [("0.5.1", "yarn"), ("0.5.2", "default")])
def test_sections_make_the_default_rope_from_0_5_2_on(version: str, kind: str) -> None:
    scaling = {"type": "yarn", "factor": 2.0, "mrope_section": [1, 1]} | LENGTH
    rope = served(version, flat_config(rope_scaling=scaling), shapes()).spec.rope
    assert rope.value.kind == kind


@pytest.mark.parametrize(
    ("version", "strays", "known"),
    [
        ("0.5.6", 1, False),
        ("0.5.6.post1", 1, True),
        ("0.5.12", 2, False),
        ("0.5.13", 2, True),
        ("0.4.9", 0, True),
    ],
)
def test_which_of_several_files_is_read_last(
    version: str, strays: int, known: bool, tmp_path: Path
) -> None:
    others = tuple(f"stray_{i}.safetensors" for i in range(strays))
    checkpoint = replace(drafter(flat_config(), shapes()), directory=tmp_path, other_files=others)
    if known:
        assert SGLANG.reader(version, None, checkpoint, None, {}).refusal is None
    else:
        with pytest.raises(NotCovered, match="in the order of the directory"):
            SGLANG.reader(version, None, checkpoint, None, {})


@pytest.mark.parametrize("architecture", ["LlamaForCausalLMEagle3", "LlamaForCausalLM"])
@pytest.mark.parametrize("name", ["num_key_value_heads", "head_dim", "intermediate_size"])
def test_a_size_of_nothing_is_refused_or_not_checked(architecture: str, name: str) -> None:
    result = outcome("0.5.23", flat_config(architectures=[architecture]) | {name: 0}, shapes())
    if name == "intermediate_size":
        assert isinstance(result, NotChecked)
        return
    assert isinstance(result, Served)
    assert result.refusal is not None
    assert result.refusal.stage is Stage.CONSTRUCT
    assert f"{name} is 0" in result.refusal.message
