"""The target's answers are made once, and are its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eyas.data.prompts import OWN_PROMPTS, read_prompts
from eyas.decode.greedy import generate
from eyas.diagnose import answers
from eyas.diagnose.answers import ANSWER, BEYOND, texts_of
from eyas.diagnose.bench import Bench, silent
from eyas.errors import UsageError


def test_a_text_is_what_the_target_says_alone(bench: Bench) -> None:
    text = bench.evidence.texts[0]
    alone = generate(bench.target, text.ids[: text.prompt], max_new=ANSWER)
    assert text.ids[text.prompt : text.prompt + text.answer] == alone.tokens
    assert len(text.ids) == text.prompt + text.answer + BEYOND
    assert text.starts == range(text.prompt - 1, text.prompt + text.answer - 2)


def test_they_are_kept_and_made_again_where_the_file_is_broken(
    bench: Bench, few_prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path))
    made: list[int] = []

    def answered(_target: object, prompts: list[object]) -> tuple[answers.Text, ...]:
        made.append(len(prompts))
        return bench.evidence.texts

    monkeypatch.setattr(answers, "_answered", answered)
    first = texts_of(bench.target, few_prompts, silent)
    assert texts_of(bench.target, few_prompts, silent) == first == bench.evidence.texts
    assert made == [8]
    (file,) = (tmp_path / "diagnose").iterdir()
    os.truncate(file, 100)
    assert texts_of(bench.target, few_prompts, silent) == first
    assert made == [8, 8]


def test_other_prompts_are_other_answers(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path))
    monkeypatch.setattr(answers, "_answered", lambda _target, _prompts: bench.evidence.texts)
    lines = OWN_PROMPTS.read_text(encoding="utf-8").splitlines()
    for name, chosen in (("a", lines[:2]), ("b", lines[1:3])):
        (tmp_path / name).write_text("\n".join(chosen) + "\n", encoding="utf-8")
        texts_of(bench.target, tmp_path / name, silent)
    assert len(list((tmp_path / "diagnose").iterdir())) == 2


def test_prompts_without_an_answer_are_no_evidence(
    bench: Bench, few_prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path))
    monkeypatch.setattr(answers, "_answered", lambda _target, _prompts: ())
    with pytest.raises(UsageError, match="none of the 8 prompts"):
        texts_of(bench.target, few_prompts, silent)


def test_own_prompts_are_twenty_four_of_six_categories() -> None:
    prompts = read_prompts(OWN_PROMPTS)
    assert (len(prompts), len({prompt.category for prompt in prompts})) == (24, 6)
