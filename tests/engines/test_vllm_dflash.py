"""vLLM's DFlash class: blocks of masked tokens."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engines.drafters import (
    HEADS,
    KV,
    VD,
    D,
    H,
    V,
    flat_config,
    qwen3_shapes,
    speculators_config,
)
from tests.engines.vllm import served_by_v1 as served
from tests.engines.vllm import tensor

from eyas.spec import Fate, Recognised, Stage

QKV = {"q": HEADS, "k": KV, "v": KV}


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
