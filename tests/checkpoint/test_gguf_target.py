"""A target's GGUF: its facts, and its tokenizer as a drafter bears it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from eyas.checkpoint import TensorBytes, open_target
from eyas.checkpoint.gguf import GgufValue, read_typed
from eyas.checkpoint.gguf_tokenizer import tokenizer_keys
from eyas.checkpoint.gguf_write import write_gguf
from eyas.errors import ConversionError, TargetError
from eyas.spec import Rope

TOKENS = [f"t{i}" for i in range(300)]
MODEL = {
    "general.architecture": "qwen3",
    "qwen3.block_count": 36,
    "qwen3.embedding_length": 64,
    "qwen3.context_length": 40960,
    "qwen3.feed_forward_length": 128,
    "qwen3.attention.head_count": 8,
    "qwen3.attention.head_count_kv": 2,
    "qwen3.attention.key_length": 16,
    "qwen3.rope.freq_base": 1e6,
}
TOKENIZER = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "qwen2",
    "tokenizer.ggml.tokens": GgufValue(value=TOKENS, kind=9, of=8),
    "tokenizer.ggml.token_type": GgufValue(value=[1] * 300, kind=9, of=5),
    "tokenizer.ggml.merges": GgufValue(value=["t 0"], kind=9, of=8),
    "tokenizer.ggml.eos_token_id": 7,
    "tokenizer.ggml.add_bos_token": False,
}


def model(directory: Path, rows: int = 304, more: tuple[str, ...] = (), **keys: Any) -> Path:
    """A model of no layers; a key that is None is left out."""
    changed = {**MODEL, **TOKENIZER, **keys}
    path = directory / "model.gguf"
    table = TensorBytes(dtype="F16", shape=(rows, 64), data=None)
    names = ("token_embd.weight", *more)
    write_gguf(
        path, {k: v for k, v in changed.items() if v is not None}, dict.fromkeys(names, table)
    )
    return path


def test_its_facts_are_read(tmp_path: Path) -> None:
    facts = open_target(model(tmp_path))

    assert facts.architectures == ("Qwen3ForCausalLM",)
    assert (facts.model_type, facts.text_model_type) == ("qwen3", "qwen3")
    assert (facts.hidden_size, facts.intermediate_size, facts.num_layers) == (64, 128, 36)
    assert (facts.num_attention_heads, facts.num_key_value_heads, facts.head_dim) == (8, 2, 16)
    assert (facts.vocab_size, facts.max_position_embeddings) == (304, 40960)
    assert (facts.rope_theta, facts.rope) == (1e6, Rope(theta=1e6, kind="default"))
    assert (facts.tie_word_embeddings, facts.dtype, facts.name) == (True, None, None)
    assert (facts.directory, facts.location) == (tmp_path, str(tmp_path / "model.gguf"))


def test_what_it_does_not_say_stays_unsaid(tmp_path: Path) -> None:
    keys = {"general.architecture": "novel", "novel.block_count": 3, "novel.rope.freq_base": None}
    facts = open_target(model(tmp_path, more=("output.weight",), **keys))

    assert (facts.architectures, facts.model_type) == ((), None)
    assert (facts.num_layers, facts.hidden_size, facts.rope_theta, facts.rope) == (3, *[None] * 3)
    assert facts.tie_word_embeddings is False


def test_a_number_for_each_layer_is_none_for_all(tmp_path: Path) -> None:
    lists = GgufValue(value=[8] * 36, kind=9, of=4)
    facts = open_target(model(tmp_path, **{"qwen3.attention.head_count_kv": lists}))
    assert facts.num_key_value_heads is None


def test_factors_without_their_numbers_are_no_rope(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    factors = TensorBytes(dtype="F32", shape=(8,), data=struct.pack("<8f", *[2.0] * 8))
    write_gguf(path, MODEL | TOKENIZER, {"rope_freqs.weight": factors})
    facts = open_target(path)
    assert (facts.rope_theta, facts.rope) == (1e6, None)
    assert facts.vocab_size == 300


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"general.architecture": "eagle3"}, "is itself a drafter"),
        ({"qwen3.block_count": "many"}, "qwen3.block_count is 'many'"),
        ({"qwen3.rope.scaling.factor": "much"}, "qwen3.rope.scaling.factor is 'much'"),
    ],
)
def test_a_file_that_is_no_target_is_one_sentence(
    tmp_path: Path, keys: dict[str, Any], reason: str
) -> None:
    with pytest.raises(TargetError, match=reason):
        open_target(model(tmp_path, **keys))


def test_an_unsound_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(TargetError, match=r"cannot be opened: .* no sound GGUF file"):
        open_target(tmp_path / "m.gguf")
    with pytest.raises(TargetError, match="there is no file"):
        open_target(tmp_path / "absent.gguf")


def test_its_tokenizer_is_copied_as_it_is(tmp_path: Path) -> None:
    path = model(tmp_path)
    keys = tokenizer_keys(open_target(path), 300)

    assert keys == read_typed(tmp_path, "model.gguf", "tokenizer.")
    assert keys["tokenizer.ggml.tokens"].value == TOKENS
    assert keys["tokenizer.ggml.eos_token_id"] == GgufValue(value=7, kind=4)
    with pytest.raises(ConversionError, match=r"trained for 304 tokens, and .* has 300"):
        tokenizer_keys(open_target(path), 304)


SPLIT = {
    "type": "Split",
    "behavior": "Isolated",
    "pattern": {
        "Regex": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
        r"| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+".replace("\\\\", "\\")
    },
}
LLAMA = {
    **SPLIT,
    "pattern": {"Regex": SPLIT["pattern"]["Regex"].replace(r"|\p{N}|", r"|\p{N}{1,3}|")},
}
BYTES = {"type": "ByteLevel", "use_regex": False}


def sequence(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(parts)}


def directory(place: Path, *, config: dict[str, Any] | None = None, **changes: Any) -> Any:
    """A target's directory with a small byte-level tokenizer of ids 0 to 5, and 8 rows."""
    content = {
        "model": {
            "type": "BPE",
            "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3},
            "merges": [["a", "b"]],
        },
        "pre_tokenizer": {"type": "ByteLevel", "use_regex": True},
        "added_tokens": [
            {"id": 4, "content": "<end>", "special": True},
            {"id": 5, "content": "<tool>", "special": False},
        ],
        **changes,
    }
    (place / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    if config is not None:
        (place / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    (place / "config.json").write_text('{"vocab_size": 8}', encoding="utf-8")
    return open_target(place)


def test_a_directory_s_tokenizer_is_spelled_as_gpt2(tmp_path: Path) -> None:
    said = {
        "eos_token": "<end>",
        "pad_token": {"content": "<tool>"},
        "bos_token": None,
        "add_bos_token": False,
        "chat_template": "{{ messages }}",
    }
    keys = tokenizer_keys(directory(tmp_path, config=said), 8)

    bare = {k.removeprefix("tokenizer."): v.value for k, v in keys.items()}
    assert bare == {
        "ggml.model": "gpt2",
        "ggml.pre": "gpt-2",
        "ggml.tokens": ["a", "b", "ab", "c", "<end>", "<tool>", "[PAD6]", "[PAD7]"],
        "ggml.token_type": [1, 1, 1, 1, 3, 4, 5, 5],
        "ggml.merges": ["a b"],
        "ggml.eos_token_id": 4,
        "ggml.padding_token_id": 5,
        "ggml.add_bos_token": False,
        "chat_template": "{{ messages }}",
    }


@pytest.mark.parametrize(
    ("changes", "pre"),
    [
        (
            {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True}, BYTES)},
            "smollm",
        ),
        ({"pre_tokenizer": sequence(SPLIT, BYTES), "normalizer": {"type": "NFC"}}, "qwen2"),
        ({"pre_tokenizer": sequence(LLAMA, BYTES)}, "llama-bpe"),
    ],
)
def test_the_way_of_cutting_has_llamacpp_s_name(
    tmp_path: Path, changes: dict[str, Any], pre: str
) -> None:
    assert tokenizer_keys(directory(tmp_path, **changes), 8)["tokenizer.ggml.pre"].value == pre


BPE = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": {"type": "Unigram", "vocab": [["a", 0.0]]}}, "a tokenizer that is no BPE"),
        ({"model": BPE | {"byte_fallback": True}}, "cuts texts in a way"),
        ({"pre_tokenizer": {"type": "Metaspace"}}, "cuts texts in a way"),
        ({"normalizer": {"type": "Lowercase"}}, "cuts texts in a way"),
        ({"model": BPE | {"merges": []}}, "a BPE without merges"),
        ({"model": BPE | {"merges": ["a b c"]}}, "has the merge 'a b c'"),
        ({"added_tokens": [{"id": 4, "content": "a"}]}, "one token under two ids"),
        ({"added_tokens": [{"id": 8, "content": "x"}]}, "trained for 8 tokens, and .* has 9"),
    ],
)
def test_another_tokenizer_is_one_sentence(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    facts = directory(tmp_path, **changes)
    with pytest.raises(ConversionError, match=reason):
        tokenizer_keys(facts, 8)


def test_a_directory_without_a_tokenizer_asks_for_the_gguf(tmp_path: Path) -> None:
    facts = directory(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ConversionError) as refused:
        tokenizer_keys(facts, 8)
    assert refused.value.hint == "name the target's GGUF: --target target.gguf"
    assert "has no tokenizer.json" in refused.value.message


def test_the_embedded_target_s_tokens_are_those_of_its_tokenizer(smollm2: Path) -> None:
    from tokenizers import Tokenizer

    keys = tokenizer_keys(open_target(smollm2), 49152)
    reference = Tokenizer.from_file(str(smollm2 / "tokenizer.json"))

    tokens = keys["tokenizer.ggml.tokens"].value
    assert tokens == [reference.id_to_token(i) for i in range(49152)]
    assert keys["tokenizer.ggml.eos_token_id"].value == reference.token_to_id("<|im_end|>")
    assert len(keys["tokenizer.ggml.merges"].value) == 48900
