from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engines.drafters import (
    HEADS,
    KV,
    VD,
    D,
    H,
    V,
    drafter,
    flat_config,
    shapes,
    speculators_config,
)
from tests.engines.sglang import outcome, served

from eyas import engines
from eyas.spec import (
    DefaultBoundaries,
    Eagle3Spec,
    Fate,
    Feedback,
    Fused,
    Initialisation,
    LastState,
    NotChecked,
    Origin,
    Ownership,
    Served,
    Stage,
    Unfilled,
    Unfused,
    VocabMap,
)

OLD, NEW = "0.5.11", "0.5.23"
VERSIONS = ("0.4.9", "0.5.4.post3")


def ids(*numbers: int) -> dict[str, Any]:
    return {"eagle_config": {"eagle_aux_hidden_state_layer_ids": list(numbers)}}


@pytest.mark.parametrize(
    ("version", "lost"),
    [
        *((version, 10) for version in (*VERSIONS, "0.5.8", "0.5.10.post1", OLD)),
        ("0.5.12", 0),
        (NEW, 0),
    ],
)
def test_layers_0_is_lost_before_0_5_12(version: str, lost: int) -> None:
    landing = served(version, flat_config(), shapes("layers.0")).landing
    assert len(landing.lost) == lost
    assert all("layers.0" in tensor.name for tensor in landing.lost)
    assert bool(landing.unfilled) == bool(lost)
    assert landing.imbalance() == ()


def test_what_nothing_fills_keeps_what_construction_left() -> None:
    landing = served(OLD, flat_config(), shapes("layers.0")).landing
    left = {p.name: p.segments[0].source for p in landing.unfilled}
    assert left["model.midlayer.mlp.down_proj.weight"] == Unfilled(
        initialisation=Initialisation.MEMORY
    )
    assert left["model.midlayer.hidden_norm.weight"] == Unfilled(initialisation=Initialisation.ONES)


def test_roles_name_the_drafters_own_matrices() -> None:
    landing = served(OLD, flat_config(), shapes()).landing
    qkv = next(p for p in landing.parameters if p.name.endswith("qkv_proj.weight"))
    assert [(s.start, s.stop, s.role) for s in qkv.segments] == [
        (0, 16, "layers.0.self_attn.q_proj.weight"),
        (16, 24, "layers.0.self_attn.k_proj.weight"),
        (24, 32, "layers.0.self_attn.v_proj.weight"),
    ]


def test_a_speculators_config_is_refused_at_parsing() -> None:
    result = served(NEW, speculators_config(), shapes("layers.0"))
    assert result.refusal.stage is Stage.CONFIG
    assert result.spec is None
    assert result.landing is None


@pytest.mark.parametrize(
    ("changes", "stage"),
    [
        ({"draft_vocab_size": None}, Stage.CONSTRUCT),
        ({"architectures": ["Eagle3DraftModel"]}, Stage.CONSTRUCT),
        ({"architectures": []}, Stage.CONFIG),
        ({"hidden_size": "wide"}, Stage.CONFIG),
        ({"draft_vocab_size": VD + 1}, Stage.LOAD),
        (ids(2, 4, 6, 8), Stage.LOAD),
        ({"num_hidden_layers": 2}, None),
    ],
)
def test_what_0_5_23_refuses(changes: dict[str, Any], stage: Stage | None) -> None:
    refusal = served(NEW, flat_config(**changes), shapes()).refusal
    assert (refusal and refusal.stage) == stage


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("lm_head.weight", "vocab_parallel_embedding.py"),
        ("norm.weight", "weight_utils.py"),
        ("fc.weight", "weight_utils.py"),
        ("midlayer.self_attn.q_proj.weight", "parameter.py"),
    ],
)
def test_a_shape_that_raises_is_cited_where_its_loader_asks(name: str, file: str) -> None:
    (first, *rest) = shapes()[name]
    refusal = served(NEW, flat_config(), shapes() | {name: (first - 1, *rest)}).refusal
    assert refusal.stage is Stage.LOAD
    assert refusal.claim.file.endswith(file)


def test_two_layers_are_refused_before_0_5_12() -> None:
    refusal = served(OLD, flat_config(num_hidden_layers=2), shapes()).refusal
    assert refusal.stage is Stage.CONSTRUCT


def test_a_null_draft_vocabulary_takes_the_targets_head() -> None:
    config = flat_config() | {"draft_vocab_size": None}
    tensors = {k: v for k, v in shapes().items() if k not in ("lm_head.weight", "d2t")}
    result = served(NEW, config, tensors)
    assert result.spec.head.value is Ownership.TARGET
    assert result.spec.draft_vocab_size.value == V
    assert result.landing.unfilled == ()


@pytest.mark.parametrize(
    ("version", "architecture", "given", "captured"),
    [
        (NEW, "LlamaForCausalLM", (2, 5, 8), (3, 6, 9)),
        (OLD, "DeepseekV3ForCausalLM", (2, 5, 8), (3, 6, 9)),
        (NEW, "DeepseekV3ForCausalLM", (2, 5, 8), (2, 5, 8)),
        (NEW, "KimiK25ForConditionalGeneration", (1, 5, 8), (2, 6, 9)),
        (NEW, "GptOssForCausalLM", (2, 6, 12), (2, 6, 12)),
        ("0.5.8", "LlamaForCausalLM", (1, 5, 8), (2, 6, 9)),
    ],
)
def test_ids_become_boundaries_as_the_target_takes_them(
    version: str, architecture: str, given: tuple[int, ...], captured: tuple[int, ...]
) -> None:
    result = served(version, flat_config(**ids(*given)), shapes(), architecture=architecture)
    assert result.spec.conditioning.boundaries.value == captured
    assert result.spec.conditioning.boundaries.origin is Origin.DECLARED
    assert result.refusal is None


def test_without_ids_or_with_top_level_ones_the_default_is_captured() -> None:
    config = flat_config(eagle_aux_hidden_state_layer_ids=[3, 6, 8])
    boundaries = served(NEW, config, shapes()).spec.conditioning.boundaries
    assert boundaries.value == DefaultBoundaries()
    assert boundaries.origin is Origin.ASSUMED
    assert boundaries.whose == f"sglang {NEW}"


def test_graphs_put_the_default_ids_in_place_up_to_0_5_10() -> None:
    config = flat_config(**ids(2, 5, 8))
    graphs = served("0.5.10.post1", config, shapes())
    assert graphs.spec.conditioning.boundaries.value == DefaultBoundaries()
    eager = served("0.5.10.post1", config, shapes(), "disable_cuda_graph=true")
    assert eager.spec.conditioning.boundaries.value == (3, 6, 9)


def test_a_boundary_past_the_target_is_one_state_fewer() -> None:
    refusal = served(NEW, flat_config(**ids(2, 5, 11)), shapes()).refusal
    assert refusal.stage is Stage.FIRST_REQUEST
    assert refusal.claim.lines == "238"


def test_norm_before_residual_is_read_nowhere() -> None:
    fact = served(NEW, flat_config(norm_before_residual=True), shapes()).spec.norm_before_residual
    assert fact.value is False
    assert fact.origin is Origin.ASSUMED


def test_launched_as_eagle_a_sound_head_computes_something_else() -> None:
    result = served(OLD, flat_config(), shapes(), "speculative_algorithm=EAGLE")
    spec = result.spec
    assert isinstance(spec, Eagle3Spec)
    assert isinstance(spec.conditioning, LastState)
    assert spec.head.value is Ownership.TARGET
    assert spec.vocab_map.value is VocabMap.PREFIX
    assert spec.draft_vocab_size.value == VD
    assert result.refusal is None
    head = next(p for p in result.landing.parameters if p.name == "lm_head.weight")
    assert head.replaced is not None
    assert head.tensors == ("lm_head.weight",)


def test_without_states_fc_is_skipped_and_nothing_else_changes() -> None:
    config = flat_config(eagle_config={"use_aux_hidden_state": False})
    spec = served(NEW, config, shapes()).spec
    assert isinstance(spec.conditioning, LastState)
    assert spec.head.value is Ownership.OWN
    assert spec.vocab_map.value is VocabMap.OFFSETS


def test_one_captured_state_as_wide_as_the_drafter_skips_fc() -> None:
    tensors = shapes() | {"fc.weight": (H, H)}
    result = served(NEW, flat_config(**ids(7)), tensors)
    assert isinstance(result.spec.conditioning, Unfused)
    assert result.spec.conditioning.boundaries.value == (8,)
    assert result.refusal is None


def test_a_state_that_is_never_captured_is_no_boundary() -> None:
    # of the two ids one is past the target, and the other alone is as wide as the drafter
    tensors = shapes() | {"fc.weight": (H, 2 * H)}
    result = served(NEW, flat_config(**ids(7, 11)), tensors)
    assert isinstance(result.spec.conditioning, Unfused)
    assert result.spec.conditioning.boundaries.value == (8,)
    assert result.refusal is None


def test_a_tied_head_cannot_be_launched_as_eagle() -> None:
    config = flat_config(tie_word_embeddings=True)
    refusal = served(OLD, config, shapes(), "speculative_algorithm=EAGLE").refusal
    assert refusal.stage is Stage.JOIN
    assert "deletes its weight twice" in refusal.message
    assert served(OLD, config, shapes()).refusal is None


def test_a_fused_tensor_fills_each_part_from_its_own_row() -> None:
    tensors = shapes() | {"midlayer.self_attn.qkv_proj.weight": (HEADS * D + 2 * KV * D, 2 * H)}
    for part in "qv":
        del tensors[f"midlayer.self_attn.{part}_proj.weight"]
    landing = served(NEW, flat_config(), tensors).landing
    qkv = next(p for p in landing.parameters if p.name.endswith("qkv_proj.weight"))
    fused = "midlayer.self_attn.qkv_proj.weight"
    # what is read later, in the order of the file, wins: here the fused tensor
    assert [(s.source.tensor, s.offset) for s in qkv.segments] == [
        (fused, 0),
        (fused, 16),
        (fused, 24),
    ]


def test_a_wider_target_needs_target_hidden_size() -> None:
    assert served(NEW, flat_config(), shapes(), hidden=32).refusal.stage is Stage.FIRST_REQUEST
    config = flat_config(target_hidden_size=32)
    tensors = shapes() | {"fc.weight": (H, 96), "embed_tokens.weight": (V, H)}
    result = served(NEW, config, tensors, hidden=32)
    assert result.refusal is None
    assert result.spec.embedding.value is Ownership.OWN


def test_a_lost_map_leaves_a_prefix() -> None:
    tensors = {k: v for k, v in shapes().items() if k != "d2t"}
    fact = served(NEW, flat_config(), tensors).spec.vocab_map
    assert fact.value is VocabMap.PREFIX
    assert fact.key == "model.safetensors :: d2t"


@pytest.mark.parametrize(
    ("version", "feedback", "fc_norm", "input_norm"),
    [
        (OLD, Feedback.PRE_NORM, False, False),
        ("0.5.12", Feedback.POST_NORM, True, False),
        ("0.5.18", Feedback.POST_NORM, True, True),
    ],
)
def test_when_the_flags_of_3_1_came(
    version: str, feedback: Feedback, fc_norm: bool, input_norm: bool
) -> None:
    config = flat_config(norm_output=True, fc_norm=True, norm_before_fc=True)
    spec = served(version, config, shapes()).spec
    conditioning = spec.conditioning
    assert isinstance(conditioning, Fused)
    assert spec.feedback.value is feedback
    assert (conditioning.fc_norm.value, conditioning.input_norm.value) == (fc_norm, input_norm)


YARN = {"rope_theta": 7.0, "rope_type": "yarn", "factor": 2.0}


def test_rope_parameters_are_unknown_to_transformers_4() -> None:
    config = flat_config(rope_theta=None, rope_parameters=YARN)
    old = served("0.5.8", config, shapes()).spec.rope
    assert (old.value.theta, old.value.kind, old.origin) == (10000.0, "default", Origin.ASSUMED)
    new = served(NEW, config, shapes()).spec.rope
    assert (new.value.theta, new.value.kind, new.origin) == (7.0, "yarn", Origin.DECLARED)


def test_a_tied_head_drops_the_drafters_own() -> None:
    result = served(NEW, flat_config(tie_word_embeddings=True), shapes())
    assert result.spec.head.value is Ownership.TIED
    assert [t.name for t in result.landing.lost] == ["lm_head.weight"]


def test_wrong_sizes_are_cut_or_padded_without_a_word() -> None:
    tensors = shapes() | {
        "midlayer.self_attn.q_proj.weight": (2 * 4 * D, 2 * H),
        "midlayer.mlp.down_proj.weight": (H, 10),
    }
    landing = served(NEW, flat_config(), tensors).landing
    q = next(t for t in landing.tensors if t.name.endswith("q_proj.weight"))
    assert q.cut == 4 * D * 2 * H
    down = next(p for p in landing.parameters if p.name.endswith("down_proj.weight"))
    assert down.segments[0].zeros == H * 14
    assert landing.imbalance() == ()


def test_t2d_is_left_out_by_design_and_d2t_is_consumed() -> None:
    fates = {t.name: t.fate for t in served(NEW, flat_config(), shapes()).landing.tensors}
    assert (fates["t2d"], fates["d2t"]) == (Fate.IGNORED, Fate.CONSUMED)


@pytest.mark.parametrize("version", ["0.4.8", "0.5.23.post1", "0.6.0"])
def test_outside_the_known_range_nothing_is_checked(version: str) -> None:
    result = outcome(version, flat_config(), shapes())
    assert isinstance(result, NotChecked)
    assert "0.4.9 to 0.5.23" in result.reason


@pytest.mark.parametrize(
    "changes",
    [
        {"architectures": ["Qwen2ForCausalLMEagle"]},
        {"architectures": ["SomethingElse"]},
        {"quantization_config": {"quant_method": "fp8"}},
        {"compression_config": {"quant_method": "compressed-tensors"}},
        {"model_type": "qwen3", "hidden_size": None},
    ],
)
def test_what_has_no_contract_is_not_checked(changes: dict[str, Any]) -> None:
    assert isinstance(outcome(NEW, flat_config(**changes), shapes()), NotChecked)


@pytest.mark.parametrize(
    ("architecture", "text", "read"),
    [
        ("LlamaForCausalLMEagle3", '{"quantization": {"quant_algo": null}}', True),
        ("LlamaForCausalLMEagle3", '{"quantization": {"quant_algo": "FP8"}}', False),
        ("LlamaForCausalLMEagle3", '{"quant_algo": "NVFP4"}', False),
        ("LlamaForCausalLM", '{"quantization": {"quant_algo": null}}', False),
    ],
)
def test_a_file_of_modelopt_tells_a_quantised_drafter(
    tmp_path: Path, architecture: str, text: str, read: bool
) -> None:
    (tmp_path / "hf_quant_config.json").write_text(text)
    config = flat_config(architectures=[architecture], draft_vocab_size=V)
    plain = drafter(config, shapes() | {"lm_head.weight": (V, H)})
    result = engines.read(
        engines.EngineRef.parse(f"sglang@{NEW}"),
        replace(plain, directory=tmp_path),
        target=None,
        launch=engines.Launch(),
    )
    assert isinstance(result, Served) is read


def test_every_claim_cites_a_file_and_lines() -> None:
    for claim in served(NEW, flat_config(), shapes()).claims:
        assert claim.project == "sglang"
        assert claim.file.endswith(".py")
        assert claim.lines.strip("0123456789-, ") == ""


@pytest.mark.parametrize("version", [OLD, NEW])
def test_no_layer_slides_whatever_the_config_says(version: str) -> None:
    config = flat_config(layer_types=["sliding_attention"], sliding_window=4)
    result = outcome(version, config, shapes())
    assert isinstance(result, Served)
    assert result.slides is not None
    assert not result.slides.value
