"""Token strings by id, from the layouts of the tokenizers library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eyas.checkpoint.tokenizer import token_strings
from eyas.errors import CheckpointError


def tokenizer_at(path: Path, content: object) -> Path:
    (path / "tokenizer.json").write_text(json.dumps(content))
    return path


def test_strings_with_their_ids(tmp_path: Path) -> None:
    content = {
        "model": {"type": "BPE", "vocab": {"b": 1, "a": 0}},
        "added_tokens": [{"id": 2, "content": "<s>"}],
    }
    assert token_strings(tokenizer_at(tmp_path, content)) == {0: "a", 1: "b", 2: "<s>"}


def test_a_list_of_pieces(tmp_path: Path) -> None:
    content = {"model": {"type": "Unigram", "vocab": [["<unk>", 0], ["a", -1.5]]}}
    assert token_strings(tokenizer_at(tmp_path, content)) == {0: "<unk>", 1: "a"}


def test_no_tokenizer(tmp_path: Path) -> None:
    assert token_strings(tmp_path) is None


def test_an_unsound_one_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(CheckpointError, match="not valid JSON"):
        token_strings(tmp_path)
