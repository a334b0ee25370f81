"""llama.cpp: what its eagle3 architecture takes from the keys and tensors of a GGUF file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engines.drafters import (
    HEADS,
    INNER,
    KV,
    VD,
    D,
    H,
    V,
    drafter,
    flat_config,
    shapes,
    target,
)

from eyas.checkpoint import Checkpoint
from eyas.engines import EngineRef, Launch, read
from eyas.engines.metric import Tally
from eyas.engines.reported import reported
from eyas.spec import (
    DefaultBoundaries,
    Eagle3Spec,
    Fate,
    Feedback,
    NotChecked,
    Origin,
    Ownership,
    Served,
    Stage,
    VocabMap,
)

BUILD = EngineRef.parse("llamacpp@b11549")


def keys(**changes: Any) -> dict[str, Any]:
    """The keys of a file; a change to None removes the key."""
    found = {
        "general.architecture": "eagle3",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.merges": ["t1 t2"],
        "tokenizer.ggml.tokens": [f"t{i}" for i in range(V)],
        "eagle3.context_length": 128,
        "eagle3.embedding_length": H,
        "eagle3.block_count": 1,
        "eagle3.feed_forward_length": INNER,
        "eagle3.attention.head_count": HEADS,
        "eagle3.attention.head_count_kv": KV,
        "eagle3.attention.layer_norm_rms_epsilon": 1e-5,
        "eagle3.rope.freq_base": 5000.0,
        "eagle3.target_layers": [2, 6, 9],
        "eagle3.target_hidden_size": H,
        **{name if "." in name else f"eagle3.{name}": v for name, v in changes.items()},
    }
    return {key: value for key, value in found.items() if value is not None}


def block(index: int = 0) -> dict[str, tuple[int, ...]]:
    return {
        f"blk.{index}.{name}.weight": shape
        for name, shape in {
            "attn_norm": (H,),
            "attn_norm_2": (H,),
            "attn_q": (HEADS * D, 2 * H),
            "attn_k": (KV * D, 2 * H),
            "attn_v": (KV * D, 2 * H),
            "attn_output": (H, HEADS * D),
            "ffn_norm": (H,),
            "ffn_gate": (INNER, H),
            "ffn_up": (INNER, H),
            "ffn_down": (H, INNER),
        }.items()
    }


def tensors(*without: str, **more: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    found = {
        "fc.weight": (H, 3 * H),
        "output_norm.weight": (H,),
        "output.weight": (VD, H),
        "d2t": (VD,),
        **block(),
    }
    return {name: shape for name, shape in found.items() if name not in without} | more


def gguf(config: dict[str, Any], found: dict[str, tuple[int, ...]]) -> Checkpoint:
    made = drafter(config, found)
    types = {
        name: "I64" if name == "d2t" else "F32" if len(shape) == 1 else "Q8_0"
        for name, shape in found.items()
    }
    headers = {n: replace(h, dtype=types[n]) for n, h in made.tensors.items()}
    return replace(made, tensors=headers, config_file="draft.gguf", files=("draft.gguf",))


def outcome(
    config: dict[str, Any], found: dict[str, tuple[int, ...]], **facts: Any
) -> Served | NotChecked:
    return read(BUILD, gguf(config, found), target=target(**facts), launch=Launch())


def served(config: dict[str, Any], found: dict[str, tuple[int, ...]], **facts: Any) -> Served:
    result = outcome(config, found, **facts)
    assert isinstance(result, Served), result
    if result.landing is not None:
        assert result.landing.imbalance() == ()
    return result


def test_a_sound_file_lands_whole() -> None:
    result = served(keys(), tensors())
    assert result.refusal is None
    assert {t.fate for t in result.landing.tensors} == {Fate.LANDED}
    assert result.landing.unfilled == ()
    spec = result.spec
    assert isinstance(spec, Eagle3Spec)
    assert spec.conditioning.boundaries.value == (2, 6, 9)
    assert spec.conditioning.boundaries.key == "draft.gguf :: eagle3.target_layers"
    assert spec.vocab_map.value is VocabMap.ABSOLUTE
    assert (spec.vocab_size.value, spec.draft_vocab_size.value) == (V, VD)
    assert spec.feedback.value is Feedback.PRE_NORM
    assert (spec.head.value, spec.embedding.value) == (Ownership.OWN, Ownership.TARGET)


def test_ids_stay_in_the_order_of_the_list() -> None:
    spec = served(keys(target_layers=[9, 2, 6]), tensors()).spec
    assert spec.conditioning.boundaries.value == (9, 2, 6)
    assert spec.conditioning.boundaries.value != DefaultBoundaries()


def test_the_state_after_the_last_layer_is_there_and_no_later_one() -> None:
    assert served(keys(target_layers=[2, 6, 12]), tensors()).refusal is None
    refusal = served(keys(target_layers=[2, 6, 13]), tensors()).refusal
    assert refusal.stage is Stage.JOIN
    assert "12 layers" in refusal.message


@pytest.mark.parametrize("count", [[2, 6], [2, 4, 6, 9], []])
def test_three_layers_are_captured_and_no_other_number(count: list[int]) -> None:
    assert served(keys(target_layers=count), tensors()).refusal.stage is Stage.CONFIG


@pytest.mark.parametrize(
    "key",
    [
        "eagle3.target_layers",
        "eagle3.target_hidden_size",
        "eagle3.attention.layer_norm_rms_epsilon",
        "eagle3.context_length",
        "eagle3.embedding_length",
        "eagle3.block_count",
        "tokenizer.ggml.model",
    ],
)
def test_a_key_that_is_needed_is_named(key: str) -> None:
    refusal = served(keys(**{key: None}), tensors()).refusal
    assert refusal.stage is Stage.CONFIG
    assert key in refusal.message


def test_what_may_be_absent_has_the_engines_default() -> None:
    absent = {
        "eagle3.attention.head_count_kv": None,
        "eagle3.rope.freq_base": None,
    }
    all_heads = {
        "blk.0.attn_k.weight": (HEADS * D, 2 * H),
        "blk.0.attn_v.weight": (HEADS * D, 2 * H),
    }
    spec = served(keys(**absent), tensors(**all_heads)).spec
    assert spec.attention.num_kv_heads.value == HEADS
    assert (spec.rope.value.theta, spec.rope.origin) == (10000.0, Origin.ASSUMED)
    assert spec.norm_before_residual.value is False
    assert spec.attention.head_dim.value == H // HEADS


def test_switches_are_read() -> None:
    norm = {"enc.output_norm.weight": (3 * H,)}
    spec = served(keys(norm_before_residual=True, norm_before_fc=True), tensors(**norm)).spec
    assert spec.norm_before_residual.value
    assert spec.conditioning.input_norm.value
    assert served(keys(norm_before_fc=True), tensors()).refusal.stage is Stage.LOAD


@pytest.mark.parametrize(
    "name",
    ["fc_norm.0.weight", "blk.0.attn_q.bias", "blk.0.attn_q_norm.weight", "enc.output_norm.weight"],
)
def test_a_tensor_that_nothing_asks_for_is_refused(name: str) -> None:
    refusal = served(keys(), tensors(**{name: (H,)})).refusal
    assert refusal.stage is Stage.LOAD
    assert name in refusal.message


@pytest.mark.parametrize("name", ["fc.weight", "output_norm.weight", "blk.0.attn_norm_2.weight"])
def test_a_missing_tensor_is_refused(name: str) -> None:
    refusal = served(keys(), tensors(name)).refusal
    assert refusal.stage is Stage.LOAD
    assert name in refusal.message


def test_a_larger_tensor_is_refused_and_not_cut() -> None:
    wrong = {"blk.0.ffn_down.weight": (H, INNER + 8)}
    assert served(keys(), tensors(**wrong)).refusal.stage is Stage.LOAD


def test_a_second_layer_loads_and_is_then_refused() -> None:
    result = served(keys(block_count=2), tensors(**block(1)))
    assert result.landing.lost == ()
    assert result.refusal.stage is Stage.JOIN
    assert "block_count is 2" in result.refusal.message


def test_the_map_must_hold_64_bits() -> None:
    made = gguf(keys(), tensors())
    narrow = {**made.tensors, "d2t": replace(made.tensors["d2t"], dtype="I32")}
    result = read(BUILD, replace(made, tensors=narrow), target=target(), launch=Launch())
    assert isinstance(result, Served)
    assert result.refusal.stage is Stage.JOIN


def test_without_a_map_the_head_is_whole() -> None:
    full = served(keys(), tensors("d2t") | {"output.weight": (V, H)})
    assert full.refusal is None
    assert full.spec.vocab_map.value is VocabMap.IDENTITY
    assert served(keys(), tensors("d2t")).refusal.stage is Stage.LOAD


def test_a_head_of_the_target_has_no_reduced_vocabulary() -> None:
    borrowed = served(keys(), tensors("d2t", "output.weight"))
    assert borrowed.refusal is None
    assert borrowed.spec.head.value is Ownership.TARGET
    assert served(keys(), tensors("output.weight")).refusal.stage is Stage.JOIN


def test_a_smaller_drafter_needs_its_own_embedding() -> None:
    config, found = keys(target_hidden_size=32), tensors(**{"fc.weight": (H, 96)})
    assert served(config, found, hidden=32).refusal.stage is Stage.JOIN
    own = found | {"token_embd.weight": (V, H)}
    result = served(config, own, hidden=32)
    assert result.refusal is None
    assert result.spec.embedding.value is Ownership.OWN
    assert served(config, own, hidden=64).refusal.stage is Stage.FIRST_REQUEST


def test_the_factors_of_llama3_are_a_tensor() -> None:
    found = tensors(**{"rope_freqs.weight": (D // 2,)})
    result = served(keys(), found)
    assert result.refusal is None
    assert result.spec.rope.value.kind == "llama3"
    wrong = tensors(**{"rope_freqs.weight": (D,)})
    assert served(keys(), wrong).refusal.stage is Stage.LOAD


def test_a_target_must_keep_the_inputs_of_its_layers() -> None:
    for name in ("Qwen3ForCausalLM", "GptOssForCausalLM"):
        assert served(keys(), tensors(), architecture=name).refusal is None
    refusal = served(keys(), tensors(), architecture="Qwen2ForCausalLM").refusal
    assert refusal.stage is Stage.FIRST_REQUEST
    assert isinstance(outcome(keys(), tensors(), architecture="NobodysForCausalLM"), NotChecked)


def test_another_architecture_is_refused() -> None:
    refusal = served(keys(**{"general.architecture": "llama"}), tensors()).refusal
    assert refusal.stage is Stage.CONFIG


@pytest.mark.parametrize("ids", [None, [1, 5, 8]])
def test_a_hugging_face_directory_is_judged_once_it_is_converted(ids: list[int] | None) -> None:
    nested = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": ids}} if ids else {}
    made = drafter(flat_config(**nested), shapes())
    result = read(BUILD, made, target=target(), launch=Launch())
    assert isinstance(result, NotChecked)
    advised = "eyas convert drafter DRAFT.gguf --to llamacpp@b11549 --target TARGET"
    assert result.reason.endswith(advised)


@pytest.mark.parametrize(
    ("changes", "more", "lost"),
    [
        ({"norm_output": True}, {}, "leaves norm_output out"),
        ({"fc_norm": True}, {"fc_norm.0.weight": (H,)}, "raises on fc_norm.0.weight"),
        ({"num_hidden_layers": 2}, {}, "num_hidden_layers 2, and not 1"),
        (
            {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 6, 8]}},
            {},
            "ignores the layer ids of eagle_config",
        ),
        ({"architectures": ["Eagle3DeepseekV2ForCausalLM"]}, {}, "Eagle3DeepseekV2ForCausalLM"),
        ({}, {"midlayer.self_attn.q_norm.weight": (D,)}, "raises on midlayer.self_attn.q_norm"),
    ],
)
def test_what_the_conversion_would_lose_is_said(
    changes: dict[str, Any], more: dict[str, tuple[int, ...]], lost: str
) -> None:
    made = drafter(flat_config(**changes), shapes() | more)
    result = read(BUILD, made, target=target(), launch=Launch())
    assert isinstance(result, Served)
    assert lost in result.refusal.message


def test_another_build_is_not_checked() -> None:
    ref = EngineRef.parse("llamacpp@4000")
    result = read(ref, gguf(keys(), tensors()), target=target(), launch=Launch())
    assert isinstance(result, NotChecked)
    assert "4000 is outside" in result.reason


def test_every_claim_cites_a_source_file_and_lines() -> None:
    for claim in served(keys(), tensors()).claims:
        assert claim.file.endswith(".cpp")
        assert claim.lines.strip("0123456789-, ") == ""


@pytest.mark.parametrize("scenario", ["eagle3-good", "eagle3-fc-zero"])
def test_the_counters_and_the_length_are_the_servers(shared: Path, scenario: str) -> None:
    folder = shared / "cases" / "exchanges" / "xllamacpp-2026.10.11549" / scenario
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    total = truth["total_over_exchanges"]
    after, before = truth["prometheus_after"], truth["prometheus_before"]
    accepted = [
        n for exchange in truth["exchanges"].values() for n in accepted_in(exchange["rounds_list"])
    ]
    at = tuple(sum(n > k for n in accepted) for k in range(3))
    tally = Tally(steps=3, rounds=len(accepted), accepted_at=at, requests=0, delivered=0)
    (report,) = reported(tally, [BUILD])
    for name in ("num_drafts", "num_accepted_tokens"):
        series = f"llamacpp:spec_decode_{name}_total"
        metric = report.named(series)
        assert metric is not None
        assert metric.value == after[series] - before[series]
    drafted = report.named("llamacpp:spec_decode_num_draft_tokens_total")
    assert drafted is not None
    assert drafted.value >= total["drafted"]
    assert "shortened" in (drafted.caution or "")
    length = report.named("mean len")
    assert length is not None
    assert length.value == pytest.approx(total["tau"], abs=1e-4)


def accepted_in(listed: list[int] | str) -> list[int]:
    if isinstance(listed, str):
        count, _, single = listed.partition(" x ")
        return json.loads(single) * int(count)
    return list(listed)
