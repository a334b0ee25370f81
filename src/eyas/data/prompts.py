"""Prompts as JSON Lines: one conversation up to the turn that the target is to answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eyas.errors import UsageError

# 24 prompts of six categories, which no training text of the drafter in assets/ contains.
OWN_PROMPTS = Path(__file__).with_name("own_prompts.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A conversation whose next turn is the assistant's."""

    id: str
    category: str
    messages: tuple[Message, ...]

    def as_chat(self) -> list[dict[str, str]]:
        """The form that a chat template takes."""
        return [{"role": turn.role, "content": turn.content} for turn in self.messages]


def read_prompts(file: Path) -> list[Prompt]:
    """Every prompt of a JSON Lines file; UsageError names the line that is none."""
    try:
        # not splitlines(): a prompt may contain U+2028, which it would split at
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"prompts `{file}` cannot be read: {error}") from error
    return [_parse(line, file, number) for number, line in enumerate(lines, 1) if line.strip()]


def write_prompts(file: Path, prompts: Iterable[Prompt]) -> None:
    """Write prompts as JSON Lines."""
    with file.open("w", encoding="utf-8") as out:
        for prompt in prompts:
            record = {"id": prompt.id, "category": prompt.category, "messages": prompt.as_chat()}
            out.write(json.dumps(record, ensure_ascii=False) + "\n")


def one_turn(name: str, category: str, content: str) -> Prompt:
    """A conversation of a single user turn."""
    return Prompt(id=name, category=category, messages=(Message(role="user", content=content),))


def _parse(line: str, file: Path, number: int) -> Prompt:
    try:
        record = json.loads(line)
        messages = tuple(
            Message(role=str(turn["role"]), content=str(turn["content"]))
            for turn in record["messages"]
        )
        prompt = Prompt(id=str(record["id"]), category=str(record["category"]), messages=messages)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise UsageError(
            f"line {number} of `{file}` is no prompt ({error!r})",
            hint='a line is {"id": …, "category": …, "messages": [{"role": …, "content": …}]}',
        ) from error
    if not _ends_with_user(prompt.messages):
        raise UsageError(f"line {number} of `{file}` does not end with a user's turn")
    return prompt


def _ends_with_user(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[-1].role == "user"
