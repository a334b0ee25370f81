"""P-EAGLE in vLLM: all draft tokens from one pass."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engines.drafters import H, flat_config, shapes, speculators_config
from tests.engines.vllm import served_by_v1 as served
from tests.engines.vllm import tensor

from eyas.spec import Fate, Stage


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


def test_parallel_drafting_has_claims_of_its_own() -> None:
    claims = served(peagle_config(), peagle_shapes()).claims
    assert any("mask_hidden" in claim.text for claim in claims)
