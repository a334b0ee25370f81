from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eyas.data.questions import limited, read_any_prompts
from eyas.errors import UsageError


def question(number: int, category: str, *turns: str) -> dict[str, Any]:
    return {"question_id": number, "category": category, "turns": list(turns)}


def write(file: Path, *records: Any) -> Path:
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def test_questions_give_their_first_turn(tmp_path: Path) -> None:
    file = write(
        tmp_path / "q.jsonl", question(81, "qa", "first", "second"), question(7, "rag", "x")
    )
    first, second = read_any_prompts(file)
    assert (first.id, first.category) == ("81", "qa")
    assert first.as_chat() == [{"role": "user", "content": "first"}]
    assert second.category == "rag"


def test_spec_bench_counts_mt_benchs_topics_as_one(tmp_path: Path) -> None:
    mt_bench = [question(1, "writing", "a"), question(2, "stem", "b")]
    file = write(tmp_path / "q.jsonl", *mt_bench, question(3, "qa", "c"))
    assert [p.category for p in read_any_prompts(file)] == ["mt_bench", "mt_bench", "qa"]
    alone = write(tmp_path / "mt.jsonl", *mt_bench)
    assert [p.category for p in read_any_prompts(alone)] == ["writing", "stem"]


def test_eyas_own_form_is_read_too(tmp_path: Path) -> None:
    turn = {"role": "user", "content": "hello"}
    file = write(tmp_path / "p.jsonl", {"id": "a", "category": "chat", "messages": [turn]})
    assert read_any_prompts(file)[0].category == "chat"


def test_limited_keeps_the_first_of_each_category(tmp_path: Path) -> None:
    records = [question(n, "qa" if n % 3 else "rag", "t") for n in range(9)]
    prompts = read_any_prompts(write(tmp_path / "q.jsonl", *records))
    assert [p.id for p in limited(prompts, 2)] == ["0", "1", "2", "3"]
    assert limited(prompts, None) == prompts


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "no prompt"),
        ([question(1, "qa")], "line 1"),
        ([question(1, "qa", "a"), {"question_id": 2}], "line 2"),
        ([question(1, "qa", "a"), question(1, "qa", "b")], "two prompts"),
        ([{"turns": [3], "question_id": 1, "category": "x"}], "line 1"),
        (["text"], "line 1"),
    ],
)
def test_what_is_no_prompt_is_named(tmp_path: Path, lines: list[Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_any_prompts(write(tmp_path / "q.jsonl", *lines))
    with pytest.raises(UsageError, match="cannot be read"):
        read_any_prompts(tmp_path / "missing.jsonl")
