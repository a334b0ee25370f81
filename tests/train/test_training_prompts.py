"""No prompt that the demo reports on can be met in training: no window of 13 words or tokens."""

from __future__ import annotations

import random
import re
import runpy
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from eyas.data.prompts import Prompt, read_prompts
from eyas.model.load import load_tokenizer

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "training_prompts.py"
DEMO = ROOT / "src" / "eyas" / "data" / "own_prompts.jsonl"
WINDOW = 13
GIVEN = "gegebenes"  # stands for a text that a template is filled with; no prompt contains it

Windows = set[tuple[Any, ...]]
Cut = Callable[[str], Sequence[Any]]


def words(text: str) -> list[str]:
    """Words without case and punctuation; every number counts as the same word."""
    return ["0" if word.isdecimal() else word for word in re.findall(r"\w+", text.lower())]


def windows(texts: Iterable[str], cut: Cut) -> Windows:
    found: Windows = set()
    for text in texts:
        parts = cut(text)
        found.update(tuple(parts[i : i + WINDOW]) for i in range(len(parts) - WINDOW + 1))
    return found


def said(prompts: Iterable[Prompt]) -> list[str]:
    return [turn.content for prompt in prompts for turn in prompt.messages]


@pytest.fixture(scope="module")
def demo() -> list[str]:
    return said(read_prompts(DEMO))


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module")
def tokens(smollm2: Path) -> Cut:
    tokenizer = load_tokenizer(smollm2)

    def cut(text: str) -> Sequence[int]:
        return tokenizer(text, add_special_tokens=False).input_ids

    return cut


@pytest.fixture(scope="module")
def own_texts(script: dict[str, Any]) -> list[str]:
    """Every template of the script in every topic, question and language, and many sums."""
    topics = [topic.strip() for topic in script["TOPICS"] if topic.strip()]
    texts = [ask.format(topic) for ask in script["ASK"] for topic in topics]
    for template in script["OPEN"]:
        others = topics if template.count("{}") > 1 else topics[:1]
        texts += [template.format(topic, other) for topic in topics for other in others]
    for template in script["TRANSLATE"]:
        texts += [template.format(language=one, text=GIVEN) for one in script["LANGUAGES"]]
    texts += [template.format(text=GIVEN) for template in script["SUMMARISE"]]
    for template in script["GROUNDED"]:
        for question in script["QUESTIONS"]:
            texts.append(template.format(text=GIVEN, other=GIVEN, question=question))
    for seed in range(5):
        texts += said(script["_own_math"](random.Random(seed)))
    return texts


@pytest.mark.parametrize("unit", ["words", "tokens"])
def test_own_templates_hold_no_window_of_the_demo(
    unit: str, demo: list[str], own_texts: list[str], tokens: Cut
) -> None:
    cut = words if unit == "words" else tokens
    watched = windows(demo, cut)
    assert len(watched) > 500
    assert windows([f"{own_texts[0]} {demo[1]}"], cut) & watched  # what it would find
    assert not windows(own_texts, cut) & watched


@pytest.mark.parametrize("unit", ["words", "tokens"])
def test_the_training_folders_hold_no_window_of_the_demo(
    unit: str,
    demo: list[str],
    shared: Path,
    tokens: Cut,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folders = {
        "--gsm8k": "gsm8k",
        "--alpaca-seed": "alpaca_seed",
        "--self-instruct": "selfinstruct",
        "--arena-hard": "arena_hard",
        "--ifeval": "ifeval",
    }
    options = [
        part for name, held in folders.items() for part in (name, str(shared / "data" / held))
    ]
    out = tmp_path / "prompts.jsonl"
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(out), *options, "--math", "100000"])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    cut = words if unit == "words" else tokens
    texts = said(read_prompts(out))
    assert len(texts) > 7473  # every question of gsm8k's train split among them
    assert not windows(texts, cut) & windows(demo, cut)
