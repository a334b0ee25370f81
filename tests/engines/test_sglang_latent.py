"""SGLang's MLA class, whose loader follows other rules than the Llama class's."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engines.drafters import (
    HEADS,
    KV_RANK,
    NOPE,
    Q_RANK,
    ROPE,
    VALUE,
    VD,
    H,
    V,
    latent_config,
    latent_shapes,
)
from tests.engines.sglang import outcome, served

from eyas.spec import Eagle3Spec, Fate, Feedback, Fused, Mla, NotChecked, Ownership, Stage

NEW = "0.5.23"
FUSED = "model.midlayer.self_attn.fused_qkv_a_proj_with_mqa.weight"


@pytest.mark.parametrize("layer", ["midlayer", "layers.0"])
@pytest.mark.parametrize("version", ["0.5.12", "0.5.14", NEW])
def test_every_tensor_has_its_place(version: str, layer: str) -> None:
    result = served(version, latent_config(), latent_shapes(layer))
    assert result.refusal is None
    assert result.landing.lost == result.landing.unfilled == result.landing.imbalance() == ()
    fused = next(p for p in result.landing.parameters if p.name == FUSED)
    assert [(s.start, s.stop, s.role) for s in fused.segments] == [
        (0, Q_RANK, "layers.0.self_attn.q_a_proj.weight"),
        (Q_RANK, Q_RANK + KV_RANK + ROPE, "layers.0.self_attn.kv_a_proj_with_mqa.weight"),
    ]
    assert isinstance(result.spec, Eagle3Spec)
    attention = result.spec.attention
    assert isinstance(attention, Mla)
    assert (attention.q_lora_rank.value, attention.v_head_dim.value) == (Q_RANK, VALUE)


def test_a_name_that_has_model_in_front_is_unknown() -> None:
    landing = served(NEW, latent_config(), latent_shapes(prefix="model.")).landing
    assert {t.name for t in landing.lost} == {
        n for n in latent_shapes(prefix="model.") if "model." in n
    }
    # The two halves of the attention's input wait for each other under a wrong name: no warning.
    assert len(landing.log) == len(landing.lost) - 2
    filled = {p.name for p in landing.parameters if p.tensors}
    assert filled == {"lm_head.weight"}


@pytest.mark.parametrize("kept", ["q_a_proj", "kv_a_proj_with_mqa"])
def test_one_half_of_the_attentions_input_is_dropped_without_the_other(kept: str) -> None:
    gone = {"q_a_proj": "kv_a_proj_with_mqa", "kv_a_proj_with_mqa": "q_a_proj"}[kept]
    tensors = {name: shape for name, shape in latent_shapes().items() if gone not in name}
    landing = served(NEW, latent_config(), tensors).landing
    assert [t.name for t in landing.lost] == [f"midlayer.self_attn.{kept}.weight"]
    assert FUSED in {p.name for p in landing.unfilled}
    assert landing.log == ()


@pytest.mark.parametrize(
    ("change", "stage"),
    [
        ({"midlayer.self_attn.q_a_proj.weight": (Q_RANK + 1, 2 * H)}, Stage.LOAD),
        ({"midlayer.self_attn.q_a_proj.weight": (Q_RANK, H)}, Stage.LOAD),
        ({"midlayer.self_attn.q_b_proj.weight": (3, Q_RANK)}, Stage.LOAD),
        ({"midlayer.self_attn.q_b_proj.weight": (HEADS * (NOPE + ROPE) + 9, Q_RANK)}, None),
        ({"midlayer.self_attn.o_proj.weight": (H, 3)}, None),
        ({"fc.weight": (H, 2 * H)}, Stage.LOAD),
        ({"fc.weight": (H + 4, 3 * H)}, None),
    ],
)
def test_which_wrong_sizes_raise(change: dict[str, tuple[int, ...]], stage: Stage | None) -> None:
    result = served(NEW, latent_config(), latent_shapes() | change)
    assert (result.refusal and result.refusal.stage) is stage
    if stage is None:
        landing = result.landing
        assert landing.imbalance() == ()
        assert any(t.cut for t in landing.tensors) or any(
            s.zeros for p in landing.parameters for s in p.segments
        )


def test_a_long_fc_raises_before_0_5_15() -> None:
    refusal = served(
        "0.5.14", latent_config(), latent_shapes() | {"fc.weight": (H + 4, 3 * H)}
    ).refusal
    assert refusal.stage is Stage.LOAD


def test_halves_that_only_fit_together_are_not_checked() -> None:
    change = {
        "midlayer.self_attn.q_a_proj.weight": (Q_RANK + 1, 2 * H),
        "midlayer.self_attn.kv_a_proj_with_mqa.weight": (KV_RANK + ROPE - 1, 2 * H),
    }
    assert isinstance(outcome(NEW, latent_config(), latent_shapes() | change), NotChecked)


@pytest.mark.parametrize(
    ("version", "changes", "stage"),
    [
        ("0.5.11", {}, Stage.CONFIG),
        ("0.5.11", {"model_type": "llama"}, Stage.CONSTRUCT),
        (NEW, {"q_lora_rank": None, "model_type": "llama"}, Stage.CONSTRUCT),
        (NEW, {"num_hidden_layers": 2}, Stage.CONSTRUCT),
        (NEW, {"hidden_act": "gelu"}, Stage.CONSTRUCT),
        (NEW, {"eagle_aux_hidden_state_layer_ids": [1, 2]}, Stage.LOAD),
    ],
)
def test_what_is_refused(version: str, changes: dict[str, Any], stage: Stage) -> None:
    assert served(version, latent_config(**changes), latent_shapes()).refusal.stage is stage


def test_a_null_query_rank_is_refused_and_an_absent_one_has_an_unknown_default() -> None:
    null = served(NEW, latent_config() | {"q_lora_rank": None}, latent_shapes())
    assert null.refusal.stage is Stage.CONSTRUCT
    assert isinstance(outcome(NEW, latent_config(q_lora_rank=None), latent_shapes()), NotChecked)


def test_ids_at_the_top_level_size_fc_and_are_not_captured() -> None:
    two = latent_config(eagle_aux_hidden_state_layer_ids=[1, 2])
    result = served(NEW, two, latent_shapes() | {"fc.weight": (H, 2 * H)})
    assert result.refusal.stage is Stage.FIRST_REQUEST
    assert "3 states" in result.refusal.message


def test_ids_of_eagle_config_go_before_those_at_the_top_level() -> None:
    both = latent_config(
        eagle_aux_hidden_state_layer_ids=[1, 2],
        eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 4, 8]},
    )
    result = served(NEW, both, latent_shapes())
    assert result.refusal is None
    assert result.spec.conditioning.boundaries.value == (2, 5, 9)


def test_an_absent_draft_vocabulary_shares_the_head() -> None:
    tensors = latent_shapes() | {"lm_head.weight": (V, H)}
    result = served(NEW, latent_config(draft_vocab_size=None), tensors)
    assert result.refusal is None
    assert result.spec.head.value is Ownership.TARGET


def test_a_null_target_width_is_as_good_as_none() -> None:
    result = served(NEW, latent_config() | {"target_hidden_size": None}, latent_shapes())
    assert result.refusal is None
    assert result.spec.target_hidden_size.value == H


@pytest.mark.parametrize(("version", "read"), [("0.5.12", False), ("0.5.13", True)])
def test_eagle_3_1_is_read_from_0_5_13_on(version: str, read: bool) -> None:
    tensors = latent_shapes() | {f"fc_norm.{i}.weight": (H,) for i in range(3)}
    spec = served(version, latent_config(fc_norm=True, norm_output=True), tensors).spec
    assert isinstance(spec.conditioning, Fused)
    assert spec.conditioning.fc_norm.value is read
    assert spec.feedback.value is (Feedback.POST_NORM if read else Feedback.PRE_NORM)


@pytest.mark.parametrize(
    ("name", "fate"),
    [("d2t", Fate.CONSUMED), ("draft.d2t", Fate.CONSUMED), ("my_d2t_map", Fate.LOST)],
)
def test_only_a_whole_name_is_a_map(name: str, fate: Fate) -> None:
    tensors = {k: v for k, v in latent_shapes().items() if k != "d2t"} | {name: (VD,)}
    landing = served(NEW, latent_config(), tensors).landing
    assert next(t.fate for t in landing.tensors if t.name == name) is fate


def test_a_rope_that_becomes_yarn_is_not_checked() -> None:
    linear = latent_config(rope_scaling={"rope_type": "linear", "factor": 2.0})
    assert isinstance(outcome(NEW, linear, latent_shapes()), NotChecked)
