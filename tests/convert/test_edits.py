"""Edits of a drafter's material: what they change, what they say, and what they refuse."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eyas.checkpoint import (
    TargetFacts,
    TensorBytes,
    open_checkpoint,
    open_target,
    write_checkpoint,
)
from eyas.convert import ConversionResult, Share, Wishes, convert, parse_goal
from eyas.convert.counts import count_corpus, end_ids, read_counts
from eyas.convert.edits.vocabulary import Pruning
from eyas.errors import ConversionError, UsageError

Make = Callable[..., Path]
IDS = [3, 30, 7, 1, 12, 5, 9, 11, 2, 4, 6, 8, 10, 13, 14, 0]
HEAD = np.arange(16 * 8, dtype="<f4").reshape(16, 8)
EMBEDDING = -np.arange(40 * 8, dtype="<f4").reshape(40, 8)
TARGET_HEAD = EMBEDDING + 0.5


def floats(numbers: np.ndarray) -> TensorBytes:
    return TensorBytes(dtype="F32", shape=numbers.shape, data=numbers.tobytes())


def integers(numbers: list[int]) -> TensorBytes:
    raw = struct.pack(f"<{len(numbers)}q", *numbers)
    return TensorBytes(dtype="I64", shape=(len(numbers),), data=raw)


@pytest.fixture
def target(tmp_path: Path) -> TargetFacts:
    """A target of 12 layers whose embedding has more rows than tokens."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 8,
        "num_hidden_layers": 12,
        "vocab_size": 32,
        "tie_word_embeddings": False,
        "eos_token_id": [1, 30],
    }
    tensors = {
        "model.embed_tokens.weight": floats(EMBEDDING),
        "lm_head.weight": floats(TARGET_HEAD),
    }
    return open_target(write_checkpoint(tmp_path / "target", config, tensors))


def converted(
    draft: Path, out: Path, to: str, target: TargetFacts | None = None, **wishes: object
) -> ConversionResult:
    asked = Wishes(**wishes)  # type: ignore[arg-type]
    return convert(open_checkpoint(draft), out, parse_goal(to), target=target, wishes=asked)


def numbers(path: Path, name: str, kind: str = "<f4") -> np.ndarray:
    checkpoint = open_checkpoint(path)
    shape = checkpoint.tensors[name].shape
    return np.frombuffer(checkpoint.read_bytes(name), kind).reshape(shape)


def test_an_unsorted_map_is_sorted_with_the_rows_of_its_head(
    make_drafter: Make, tmp_path: Path
) -> None:
    offsets = integers([token - i for i, token in enumerate(IDS)])
    tensors = {"d2t": offsets, "lm_head.weight": floats(HEAD)}
    draft = make_drafter(without=("t2d",), tensors=tensors)
    done = converted(draft, tmp_path / "out", "speculators")
    assert any("the map is sorted" in change for change in done.plan.changes)
    assert "t2d is made from d2t" in done.plan.changes
    d2t = numbers(tmp_path / "out", "d2t", "<i8")
    assert (d2t + np.arange(16)).tolist() == sorted(IDS)
    rows = numbers(tmp_path / "out", "lm_head.weight")
    assert np.array_equal(rows, HEAD[np.argsort(IDS)])
    kept = numbers(tmp_path / "out", "t2d", "?")
    assert np.flatnonzero(kept).tolist() == sorted(IDS)


def test_absolute_ids_become_offsets(make_drafter: Make, tmp_path: Path) -> None:
    ids = [*range(15), 31]  # as offsets they would lie outside
    draft = make_drafter(without=("t2d",), tensors={"d2t": integers(ids)})
    done = converted(draft, tmp_path / "out", "sglang@0.5.23")
    assert "absolute ids become offsets" in done.plan.changes
    assert (numbers(tmp_path / "out", "d2t", "<i8") + np.arange(16)).tolist() == ids


def test_a_map_is_made_from_its_mask(make_drafter: Make, tmp_path: Path) -> None:
    done = converted(make_drafter(without=("d2t",)), tmp_path / "out", "sglang@0.5.23")
    assert "d2t is made from t2d" in done.plan.changes
    assert numbers(tmp_path / "out", "d2t", "<i8").tolist() == list(range(16))


def test_a_mask_that_contradicts_its_map_is_rebuilt(make_drafter: Make, tmp_path: Path) -> None:
    wrong = TensorBytes(dtype="BOOL", shape=(32,), data=bytes(16) + b"\1" * 16)
    done = converted(make_drafter(tensors={"t2d": wrong}), tmp_path / "out", "speculators")
    assert "t2d is rebuilt from d2t" in done.plan.changes
    assert np.flatnonzero(numbers(tmp_path / "out", "t2d", "?")).tolist() == list(range(0, 32, 2))


@pytest.mark.parametrize(
    ("ids", "said"),
    [([*range(15), 14], "two draft ids to one token"), ([*range(15), 99], "the target has 32")],
)
def test_a_map_that_is_none_is_refused(
    make_drafter: Make, tmp_path: Path, ids: list[int], said: str
) -> None:
    offsets = integers([token - i for i, token in enumerate(ids)])
    draft = make_drafter(without=("t2d",), tensors={"d2t": offsets})
    with pytest.raises(ConversionError, match=said):
        converted(draft, tmp_path / "out", "speculators")


def test_the_targets_embedding_is_added_and_left(
    make_drafter: Make, tmp_path: Path, target: TargetFacts
) -> None:
    draft = make_drafter()
    converted(draft, tmp_path / "own", "vllm@0.33.0:v1", target, embedding=Share.ADD)
    added = numbers(tmp_path / "own", "embed_tokens.weight")
    assert np.array_equal(added, EMBEDDING[:32])
    done = converted(
        tmp_path / "own", tmp_path / "less", "vllm@0.33.0:v1", target, embedding=Share.LEAVE
    )
    assert "embed_tokens.weight" not in open_checkpoint(tmp_path / "less").tensors
    assert any("left to the target" in change for change in done.plan.changes)


def test_an_embedding_that_was_trained_is_never_left_to_the_target(
    make_drafter: Make, tmp_path: Path, target: TargetFacts
) -> None:
    trained = EMBEDDING[:32].copy()
    trained[31, 7] += 1
    draft = make_drafter(tensors={"embed_tokens.weight": floats(trained)})
    with pytest.raises(ConversionError, match="would be lost"):
        converted(draft, tmp_path / "out", "speculators", target, embedding=Share.LEAVE)
    # SGLang puts the target's in place whatever the files hold; vLLM reads them
    with pytest.raises(ConversionError, match="reads tokens with the target's") as caught:
        converted(draft, tmp_path / "out", "sglang@0.5.23", target)
    assert "vllm@0.33.0" in str(caught.value)
    assert not (tmp_path / "out").exists()
    converted(draft, tmp_path / "out", "vllm@0.33.0:v1", target)


def test_a_copy_of_the_targets_embedding_may_be_replaced_by_it(
    make_drafter: Make, tmp_path: Path, target: TargetFacts
) -> None:
    draft = make_drafter(tensors={"embed_tokens.weight": floats(EMBEDDING[:32])})
    with pytest.raises(ConversionError) as caught:
        converted(draft, tmp_path / "out", "sglang@0.5.23")
    assert caught.value.hint is not None
    assert caught.value.hint.endswith("--target")
    done = converted(draft, tmp_path / "out", "sglang@0.5.23", target)
    assert any("whose numbers the drafter's own has" in change for change in done.plan.changes)


def test_a_tied_head_is_stored(make_drafter: Make, tmp_path: Path, target: TargetFacts) -> None:
    own = EMBEDDING[:32] * 2
    draft = make_drafter(
        without=("d2t", "t2d", "lm_head.weight"),
        tensors={"embed_tokens.weight": floats(own)},
        draft_vocab_size=32,
        tie_word_embeddings=True,
    )
    converted(draft, tmp_path / "out", "speculators", target, head=Share.ADD)
    assert np.array_equal(numbers(tmp_path / "out", "lm_head.weight"), own)


def test_the_targets_head_is_added_and_left(
    make_drafter: Make, tmp_path: Path, target: TargetFacts
) -> None:
    draft = make_drafter(without=("d2t", "t2d", "lm_head.weight"), draft_vocab_size=32)
    converted(draft, tmp_path / "own", "specforge", target, head=Share.ADD)
    assert np.array_equal(numbers(tmp_path / "own", "lm_head.weight"), TARGET_HEAD[:32])
    converted(tmp_path / "own", tmp_path / "less", "specforge", target, head=Share.LEAVE)
    assert "lm_head.weight" not in open_checkpoint(tmp_path / "less").tensors
    with pytest.raises(ConversionError, match="rows of a reduced vocabulary"):
        converted(make_drafter("b"), tmp_path / "o", "specforge", target, head=Share.LEAVE)


def test_another_type_says_whether_it_rounds(make_drafter: Make, tmp_path: Path) -> None:
    draft = make_drafter()
    done = converted(draft, tmp_path / "wide", "speculators", dtype="float32")
    assert "13 weights from BF16 to F32: widened, exactly" in done.plan.changes
    back = converted(tmp_path / "wide", tmp_path / "back", "specforge", dtype="bfloat16")
    assert "13 weights from F32 to BF16: rounded to the nearest" in back.plan.changes
    before, after = open_checkpoint(draft), open_checkpoint(tmp_path / "back")
    assert all(before.read_bytes(name) == after.read_bytes(name) for name in before.tensors)
    with pytest.raises(UsageError, match="'int8' is no type"):
        converted(draft, tmp_path / "x", "speculators", dtype="int8")


def test_a_vocabulary_is_cut_to_what_is_counted_most(
    make_drafter: Make, tmp_path: Path, target: TargetFacts
) -> None:
    draft = make_drafter(tensors={"lm_head.weight": floats(HEAD)})  # row i is token 2i
    counts = {4: 10.0, 5: 99.0, 8: 5.0, 0: 5.0, 30: 0.0}
    pruning = Pruning(size=3, counts=counts, always=end_ids(target))
    done = converted(draft, tmp_path / "out", "sglang@0.5.23", pruning=pruning)
    d2t = numbers(tmp_path / "out", "d2t", "<i8")
    # 30 ends an answer; token 5 is none of the drafter's; of 0 and 8 the lower is taken
    assert (d2t + np.arange(3)).tolist() == [0, 4, 30]
    assert np.array_equal(numbers(tmp_path / "out", "lm_head.weight"), HEAD[[0, 2, 15]])
    assert "12.61% of those counted" in done.plan.changes[0]
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["draft_vocab_size"] == 3
    with pytest.raises(UsageError, match="no part of the drafter's 16 tokens"):
        converted(draft, tmp_path / "x", "specforge", pruning=Pruning(size=16, counts=counts))


def test_a_whole_vocabulary_gets_its_first_map(
    make_drafter: Make, tmp_path: Path, target: TargetFacts
) -> None:
    draft = make_drafter(without=("d2t", "t2d", "lm_head.weight"), draft_vocab_size=32)
    pruning = Pruning(size=2, counts={7: 2.0, 31: 3.0})
    converted(draft, tmp_path / "out", "vllm@0.33.0:v1", target, pruning=pruning)
    assert numbers(tmp_path / "out", "d2t", "<i8").tolist() == [7, 30]
    assert np.array_equal(numbers(tmp_path / "out", "lm_head.weight"), TARGET_HEAD[[7, 31]])


def test_layer_ids_are_left_out_only_where_they_are_the_default(
    make_drafter: Make, tmp_path: Path, target: TargetFacts
) -> None:
    """EAGLE's own code has no key for them: 2, 6 and 9 of 12 layers."""
    sound = make_drafter("a", eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 5, 8]})
    done = converted(sound, tmp_path / "out", "eagle", target)
    assert any("default of a target of 12 layers" in change for change in done.plan.changes)
    other = make_drafter("b", eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 5, 9]})
    with pytest.raises(ConversionError, match="layer ids"):
        converted(other, tmp_path / "no", "eagle", target)


def test_counts_are_read_from_json_and_from_lines(tmp_path: Path) -> None:
    file = tmp_path / "counts"
    for text in ('{"3": 2, "5": 0.5}', "3 2\n\n5 0.5\n"):
        file.write_text(text)
        assert read_counts(file) == {3: 2.0, 5: 0.5}
    for text in ("", "[]", '{"a": 1}', '{"1": -2}', "1 2 3", '{"1": null}', '{"1": NaN}'):
        file.write_text(text)
        with pytest.raises(UsageError, match="no counts"):
            read_counts(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read_counts(tmp_path / "nowhere")


def test_a_corpus_is_counted_in_the_targets_tokens(smollm2: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    facts = open_target(smollm2)
    text = tmp_path / "a.txt"
    text.write_text("The falcon flies.\nThe falcon sleeps.\n")
    chats = tmp_path / "a.jsonl"
    lines = [{"text": "The falcon flies.\n"}, {"messages": [{"content": "The falcon sleeps.\n"}]}]
    chats.write_text("".join(json.dumps(line) + "\n" for line in lines))
    counts = count_corpus(text, facts)
    assert counts == count_corpus(chats, facts)
    the = Tokenizer.from_file(str(smollm2 / "tokenizer.json")).token_to_id("The")
    assert counts[the] == 2
    chats.write_text('{"prompt": "x"}\n')
    with pytest.raises(UsageError, match=r"line 1 of .* has neither"):
        count_corpus(chats, facts)
    with pytest.raises(UsageError, match="no target is named"):
        count_corpus(text, None)


def test_a_fused_drafter_is_split(make_drafter: Make, tmp_path: Path) -> None:
    parts = {"q": (8, 16), "k": (4, 16), "v": (4, 16)}
    fused = np.arange(256, dtype="<f4").reshape(16, 16)
    gate_up = np.arange(192, dtype="<f4").reshape(24, 8)
    draft = make_drafter(
        without=[f"midlayer.self_attn.{part}_proj.weight" for part in parts]
        + ["midlayer.mlp.gate_proj.weight", "midlayer.mlp.up_proj.weight"],
        tensors={
            "midlayer.self_attn.qkv_proj.weight": floats(fused),
            "midlayer.mlp.gate_up_proj.weight": floats(gate_up),
        },
    )
    done = converted(draft, tmp_path / "out", "speculators")
    assert sum("split into its parts" in change for change in done.plan.changes) == 2
    first = 0
    for part, (rows, _) in parts.items():
        held = numbers(tmp_path / "out", f"layers.0.self_attn.{part}_proj.weight")
        assert np.array_equal(held, fused[first : first + rows])
        first += rows
    assert np.array_equal(numbers(tmp_path / "out", "layers.0.mlp.up_proj.weight"), gate_up[12:])


def test_weights_are_split_into_shards(make_drafter: Make, tmp_path: Path) -> None:
    converted(make_drafter(), tmp_path / "out", "sglang@0.5.23", shard_bytes=600)
    written = open_checkpoint(tmp_path / "out")
    assert len(written.files) > 2
    assert (tmp_path / "out" / "model.safetensors.index.json").is_file()
