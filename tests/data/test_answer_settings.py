"""A directory of answers says what they were made of, and takes no others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from eyas.data.answer_settings import AnswerSettings, keep_settings
from eyas.data.prompts import one_turn
from eyas.errors import UsageError

SETTINGS = AnswerSettings(
    batch_size=2, max_prompt_tokens=60, max_new_tokens=12, temperatures=(0.0, 0.7), seed=0
)
PROMPTS = [one_turn("a", "question", "What is bread?"), one_turn("b", "math", "What is 2 + 2?")]


def test_what_was_noted_is_taken_again(tmp_path: Path) -> None:
    keep_settings(tmp_path / "new", "tiny", SETTINGS, PROMPTS)
    note = (tmp_path / "new" / "settings.json").read_text()
    keep_settings(tmp_path / "new", "tiny", SETTINGS, PROMPTS)
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["settings.json"]
    assert (tmp_path / "new" / "settings.json").read_text() == note
    assert json.loads(note)["temperatures"] == [0.0, 0.7]


def test_anything_else_is_refused(tmp_path: Path) -> None:
    keep_settings(tmp_path, "tiny", SETTINGS, PROMPTS)
    with pytest.raises(UsageError, match="made with seed = 0, not 1"):
        keep_settings(tmp_path, "tiny", replace(SETTINGS, seed=1), PROMPTS)
    with pytest.raises(UsageError, match="made with target = 'tiny', not 'other'"):
        keep_settings(tmp_path, "other", SETTINGS, PROMPTS)
    for prompts in (PROMPTS[::-1], PROMPTS[:1]):
        with pytest.raises(UsageError, match="made with prompts = "):
            keep_settings(tmp_path, "tiny", SETTINGS, prompts)


def test_answers_without_a_note_are_refused(tmp_path: Path) -> None:
    (tmp_path / "answers-00000.jsonl").write_text("")
    with pytest.raises(UsageError, match=r"no settings\.json"):
        keep_settings(tmp_path, "tiny", SETTINGS, PROMPTS)


@pytest.mark.parametrize("text", ["[]", "{", '"x"'])
def test_a_note_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(UsageError, match=r"settings\.json`"):
        keep_settings(tmp_path, "tiny", SETTINGS, PROMPTS)
