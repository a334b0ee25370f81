"""llama.cpp: what of a GGUF file it raises or aborts on, and at which point of its start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.engines.drafters import HEADS, D, H, V, target
from tests.engines.test_llamacpp import BUILD, gguf, keys, outcome, served, tensors

from eyas.checkpoint import Checkpoint
from eyas.engines import Launch, read
from eyas.spec import NotChecked, Refusal, Served, Stage

TOKENS = [f"t{i}" for i in range(V)]


def judged(checkpoint: Checkpoint, **facts: Any) -> Refusal | None:
    result = read(BUILD, checkpoint, target=target(**facts), launch=Launch())
    assert isinstance(result, Served), result
    return result.refusal


def typed(**types: tuple[int, int | None]) -> Checkpoint:
    named = {name.replace("__", "."): kind for name, kind in types.items()}
    return replace(gguf(keys(), tensors()), key_types=named)


@pytest.mark.parametrize(
    ("key", "kind", "word"),
    [
        ("eagle3__block_count", (5, None), "i32, and must be u32"),
        ("eagle3__norm_before_residual", (4, None), "u32, and must be bool"),
        ("eagle3__rope__freq_base", (12, None), "f64, and must be f32"),
        ("eagle3__attention__head_count", (0, None), "u8, and must be u32"),
        ("eagle3__attention__head_count", (9, 6), "a list of f32"),
        ("eagle3__target_layers", (9, 11), "a list of i64"),
        ("eagle3__target_layers", (4, None), "u32"),
        ("general__file_type", (0, None), "u8, and must be u32"),
        ("tokenizer__ggml__tokens", (9, 5), "must be a list of str"),
        ("tokenizer__ggml__scores", (4, None), "must be a list of i32 or f32"),
        ("tokenizer__ggml__eos_token_id", (5, None), "i32, and must be u32"),
        ("tokenizer__ggml__merges", (9, 4), "no list of texts"),
    ],
)
def test_a_key_has_the_type_that_is_asked_for(
    key: str, kind: tuple[int, int | None], word: str
) -> None:
    refusal = judged(typed(**{key: kind}))
    assert refusal is not None
    assert (refusal.stage, word in refusal.message) == (Stage.CONFIG, True), refusal.message


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("eagle3__target_layers", (9, 4)),
        ("eagle3__attention__head_count", (9, 5)),
        ("eagle3__unheard", (12, None)),
        ("general__type", (4, None)),
        ("tokenizer__ggml__tokens", (9, 8)),
    ],
)
def test_other_types_and_other_keys_are_taken(key: str, kind: tuple[int, int | None]) -> None:
    assert judged(typed(**{key: kind})) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"block_count": 0},
        {"block_count": 513},
        {"nextn_predict_layers": 2},
        {"expert_count": 2},
        {"expert_used_count": 1},
        {"expert_group_count": 1},
        {"eagle3.rope.scaling.type": "dynamic"},
        {"eagle3.attention.head_count": [2, 2]},
        {"tokenizer.ggml.model": "unheard"},
        {"tokenizer.ggml.pre": "unheard"},
        {"tokenizer.ggml.merges": None},
        {"tokenizer.ggml.tokens": None},
        {"tokenizer.ggml.tokens": [*TOKENS[1:], "t1"]},
        {"tokenizer.ggml.scores": [0] * (V - 1)},
        {"tokenizer.ggml.token_type": [1]},
    ],
)
def test_what_is_asserted_of_keys_comes_before_the_tensors(changes: dict[str, Any]) -> None:
    refusal = served(keys(**changes), tensors("fc.weight")).refusal
    assert refusal is not None
    assert refusal.stage is Stage.CONFIG, refusal.message


def test_a_list_with_a_number_for_the_one_layer_is_that_number() -> None:
    spec = served(keys(**{"eagle3.attention.head_count": [4]}), tensors()).spec
    assert spec is not None
    assert spec.attention.num_heads.value == 4


def test_sizes_of_one_at_the_front_do_not_count() -> None:
    result = served(keys(), tensors(**{"blk.0.attn_q.weight": (1, HEADS * D, 2 * H)}))
    assert result.refusal is None
    behind = served(keys(), tensors(**{"blk.0.attn_q.weight": (HEADS * D, 2 * H, 1)}))
    assert behind.refusal.stage is Stage.LOAD


def test_layers_of_another_head_are_none_of_the_drafters() -> None:
    refusal = served(keys(nextn_predict_layers=1), tensors()).refusal
    assert (refusal.stage, "nothing asks for it" in refusal.message) == (Stage.LOAD, True)


@pytest.mark.parametrize(
    ("name", "dtype", "stage"),
    [
        ("blk.0.attn_norm.weight", "F16", Stage.JOIN),
        ("output_norm.weight", "BF16", Stage.JOIN),
        ("enc.output_norm.weight", "F16", Stage.FIRST_REQUEST),
        ("blk.0.attn_q.weight", "F64", Stage.JOIN),
        ("output.weight", "I8", Stage.JOIN),
        ("fc.weight", "I32", Stage.FIRST_REQUEST),
        ("token_embd.weight", "F64", Stage.JOIN),
        ("token_embd.weight", "I32", None),
        ("rope_freqs.weight", "F16", Stage.LOAD),
        ("blk.0.attn_q.weight", "BF16", None),
    ],
)
def test_a_tensor_of_a_type_that_is_not_computed_with(
    name: str, dtype: str, stage: Stage | None
) -> None:
    extra = {
        "enc.output_norm.weight": (3 * H,),
        "token_embd.weight": (V, H),
        "rope_freqs.weight": (2,),
    }
    made = gguf(keys(norm_before_fc=True), tensors(**extra))
    header = replace(made.tensors[name], dtype=dtype)
    refusal = judged(replace(made, tensors={**made.tensors, name: header}))
    assert (None if refusal is None else refusal.stage) is stage


def test_ids_beyond_the_files_own_tokens_abort() -> None:
    assert served(keys(), tensors(), vocab=V).refusal is None
    refusal = served(keys(), tensors(), vocab=V + 1).refusal
    assert (refusal.stage, "tokenizer.ggml.tokens" in refusal.message) == (
        Stage.FIRST_REQUEST,
        True,
    )
    few = tensors(**{"token_embd.weight": (V - 1, H)})
    assert served(keys(), few, vocab=V).refusal.stage is Stage.FIRST_REQUEST


def test_a_mapped_file_begins_its_tensors_at_a_multiple_of_32() -> None:
    made = gguf(keys(), tensors())

    def beginning(start: int) -> Refusal | None:
        found = {
            n: replace(t, start=start + 32 * i) for i, (n, t) in enumerate(made.tensors.items())
        }
        whole = replace(made, tensors=found)
        whole.keep("d2t", bytes(8 * found["d2t"].shape[0]))
        return judged(whole)

    assert beginning(64) is None
    assert beginning(80).stage is Stage.LOAD


@pytest.mark.parametrize(
    "changes",
    [
        {"eagle3.rope.dimension_count": 2},
        {"pooling_type": 1},
        {"eagle3.attention.causal": False},
        {"embedding_length_out": H - 1},
        {"tokenizer.ggml.model": "bert"},
    ],
)
def test_what_no_converter_writes_is_not_judged(changes: dict[str, Any]) -> None:
    assert isinstance(outcome(keys(**changes), tensors()), NotChecked)
