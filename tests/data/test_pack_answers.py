"""Packed answers come back word for word to the prompts they were given to, and to no other."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from eyas.data.answers import chat_ids
from eyas.data.conversation import Conversation, read_conversations, write_shard
from eyas.data.prompts import one_turn, write_prompts
from eyas.model.load import load_tokenizer

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "pack_answers.py"


def test_packing_is_undone_for_the_same_prompts(
    smollm2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script: dict[str, Any] = runpy.run_path(str(SCRIPT))
    tokenizer = load_tokenizer(smollm2)
    prompts = [one_turn(f"p{n}", "qa", f"Name {n} rivers.") for n in range(3)]
    said = [
        Conversation(
            id=prompt.id,
            category=prompt.category,
            ids=(*(ids := chat_ids(tokenizer, prompt)), 49151, n),
            prompt_length=len(ids),
            temperature=0.5 * n,
        )
        for n, prompt in enumerate(prompts)
    ]
    (tmp_path / "said").mkdir()
    write_shard(tmp_path / "said" / "answers-00000.jsonl", said)
    script["pack"](tmp_path / "packed.safetensors", [tmp_path / "said"])
    prompts[1] = one_turn("p1", "qa", "Name another river.")
    write_prompts(tmp_path / "prompts.jsonl", prompts)
    script["unpack"](
        tmp_path / "packed.safetensors", tmp_path / "prompts.jsonl", tmp_path / "back", smollm2
    )
    assert list(read_conversations(tmp_path / "back")) == [said[0], said[2]]
    assert "2 of 3 answers" in capsys.readouterr().out
