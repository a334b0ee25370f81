"""Prompts in the form of MT-bench and Spec-Bench: question_id, category, turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eyas.data.prompts import Prompt, one_turn, read_prompts
from eyas.errors import UsageError

# Spec-Bench (arXiv 2401.07851) counts MT-bench's eight topics as one of its six categories.
MT_BENCH = frozenset(
    {
        "writing",
        "roleplay",
        "reasoning",
        "math",
        "coding",
        "extraction",
        "stem",
        "humanities",
    }
)


def read_any_prompts(file: Path) -> list[Prompt]:
    """The prompts of a JSON Lines file in eyas's form or in Spec-Bench's, told by its first line.

    Raises UsageError for a file that is neither, that is empty, or that repeats an id.
    """
    prompts = read_questions(file) if _asks_in_turns(file) else read_prompts(file)
    if not prompts:
        raise UsageError(f"`{file}` holds no prompt")
    seen: set[str] = set()
    for prompt in prompts:
        if prompt.id in seen:
            raise UsageError(f"`{file}` holds two prompts with the id {prompt.id!r}")
        seen.add(prompt.id)
    return prompts


def read_questions(file: Path) -> list[Prompt]:
    """The first turn of every question; UsageError names the line that is none.

    Where other categories stand beside MT-bench's topics the file is taken for Spec-Bench, and
    those topics for its category ``mt_bench``.
    """
    lines = file.read_text(encoding="utf-8").split("\n")
    questions = [_question(line, file, n) for n, line in enumerate(lines, 1) if line.strip()]
    if {question.category for question in questions} <= MT_BENCH:
        return questions
    return [
        Prompt(id=q.id, category="mt_bench", messages=q.messages) if q.category in MT_BENCH else q
        for q in questions
    ]


def limited(prompts: list[Prompt], per_category: int | None) -> list[Prompt]:
    """The first prompts of each category, in the file's order; all of them without a limit."""
    if per_category is None:
        return prompts
    kept: list[Prompt] = []
    counts: dict[str, int] = {}
    for prompt in prompts:
        counts[prompt.category] = counts.get(prompt.category, 0) + 1
        if counts[prompt.category] <= per_category:
            kept.append(prompt)
    return kept


def _asks_in_turns(file: Path) -> bool:
    try:
        with file.open(encoding="utf-8") as lines:
            first = next((line for line in lines if line.strip()), "null")
        record: Any = json.loads(first)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"prompts `{file}` cannot be read: {error}") from error
    except json.JSONDecodeError:
        return False  # read_prompts names the line
    return isinstance(record, dict) and "turns" in record


def _question(line: str, file: Path, number: int) -> Prompt:
    try:
        record = json.loads(line)
        turn = record["turns"][0]
        if not isinstance(turn, str):
            raise TypeError("a turn is no text")
        return one_turn(str(record["question_id"]), str(record["category"]), turn)
    except (json.JSONDecodeError, KeyError, IndexError, TypeError) as error:
        raise UsageError(
            f"line {number} of `{file}` is no question ({error!r})",
            hint='a line is {"question_id": …, "category": …, "turns": ["…"]}',
        ) from error
