from __future__ import annotations

from pathlib import Path

import pytest

from eyas.data.prompts import Message, Prompt, one_turn, read_prompts, write_prompts
from eyas.errors import UsageError


def test_prompts_come_back_as_written(tmp_path: Path) -> None:
    # U+2028 is a line to str.splitlines, but not to JSON Lines
    prompts = [
        one_turn("a", "math", "one\ntwo\u2028three"),
        Prompt(
            id="b",
            category="conversation",
            messages=(
                Message(role="user", content="Hi."),
                Message(role="assistant", content="Hello."),
                Message(role="user", content="ü"),
            ),
        ),
    ]
    write_prompts(tmp_path / "prompts.jsonl", prompts)
    assert read_prompts(tmp_path / "prompts.jsonl") == prompts


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2 of .* is no prompt"),
        ('{"id": "a", "category": "b"}', "line 2 of .* is no prompt"),
        ('{"id": "a", "category": "b", "messages": [7]}', "line 2 of .* is no prompt"),
        (
            '{"id": "a", "category": "b", "messages": [{"role": "assistant", "content": ""}]}',
            "line 2 of .* does not end with a user's turn",
        ),
    ],
)
def test_a_line_that_is_no_prompt_is_named(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "prompts.jsonl"
    write_prompts(file, [one_turn("a", "b", "c")])
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(UsageError, match=said):
        read_prompts(file)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_prompts(tmp_path / "none.jsonl")
