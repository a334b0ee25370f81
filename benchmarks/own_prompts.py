"""Build training prompts from the texts that were written for this project.

    python benchmarks/own_prompts.py short OUT.jsonl [--seed N]
    python benchmarks/own_prompts.py long OUT.jsonl [--seed N]

`short` asks questions, sets tasks and has German sentences translated; `long` has whole articles
summarised and questions answered from several passages, which puts answers hundreds of tokens
into a conversation.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eyas.data.prompts import Prompt, one_turn, write_prompts

TEXTS = Path(__file__).parent / "texts"

TRANSLATE = (
    "Translate German to English: {}",
    "Translate German to English: {}",
    "Translate the following German sentence into English.\n\n{}",
    "What does this German sentence mean? {}",
    "Please translate to English: {}",
)
ASK = ("{}", "{}", "{} Answer briefly.", "Answer the question and explain: {}")
SUMMARISE = (
    "Summarize: {}",
    "Summarize: {}",
    "Summarize the following article in three sentences.\n\n{}",
    "{}\n\nWhat are the key points of this article?",
    "Write a short summary of this text:\n\n{}",
    "Here is a news report.\n\n{}\n\nWhat happened, and who was involved?",
)
GROUNDED = (
    "{passages}\n{question}",
    "{passages}\n\n{question}",
    "Answer the question using the passages.\n\n{passages}\n\nQuestion: {question}",
    "Read these documents.\n\n{passages}\n\nBased on them: {question}",
)


def main() -> None:
    """Write the prompts and say how many of each category there are."""
    options = _options()
    chance = random.Random(options.seed)
    made = {"short": _short, "long": _long}[options.kind]
    prompts = list(made(chance))
    chance.shuffle(prompts)
    write_prompts(options.out, prompts)
    counts: dict[str, int] = {}
    for prompt in prompts:
        counts[prompt.category] = counts.get(prompt.category, 0) + 1
    print(len(prompts), "prompts:", counts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("short", "long"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _lines(name: str) -> list[str]:
    text = (TEXTS / name).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line.strip()]


def _records(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _lines(name)]


def _short(chance: random.Random) -> Iterator[Prompt]:
    german = _lines("german.txt")
    for number, sentence in enumerate(german):
        for turn, template in enumerate(chance.sample(TRANSLATE, 3)):
            text = sentence
            if turn == 2:  # two sentences together are as long as the longest of a news report
                text = f"{sentence} {chance.choice(german)}"
            content = template.format(text)
            yield one_turn(f"german-{number}-{turn}", "translation", content)
    for number, question in enumerate(_lines("questions.txt")):
        for turn, template in enumerate(chance.sample(ASK, 2)):
            yield one_turn(f"question-{number}-{turn}", "qa", template.format(question))
    for number, task in enumerate(_lines("tasks.txt")):
        for turn in range(3):
            content = task.replace("\\n", "\n")
            yield one_turn(f"task-{number}-{turn}", "conversation", content)


def _long(chance: random.Random) -> Iterator[Prompt]:
    articles = [record["text"] for record in _records("articles.jsonl")]
    passages = _records("passages.jsonl")
    texts = articles * 2 + [record["text"] for record in passages]
    for number, text in enumerate(texts):
        for turn, template in enumerate(chance.sample(SUMMARISE, 3)):
            content = template.format(_part(text, chance) if turn else text)
            yield one_turn(f"summary-{number}-{turn}", "summarization", content)
    encyclopaedic = [record["text"] for record in passages]
    for number, record in enumerate(passages):
        for turn, question in enumerate(record["questions"] * 2):
            held = [record["text"], *chance.sample(encyclopaedic, 3)]
            chance.shuffle(held)
            joined = chance.choice(("\n", "\n\n")).join(_part(text, chance) for text in held)
            content = chance.choice(GROUNDED).format(passages=joined, question=question)
            yield one_turn(f"grounded-{number}-{turn}", "rag", content)


def _part(text: str, chance: random.Random) -> str:
    """A run of the text's words, at least half of them: passages are often cut in mid-sentence."""
    words = text.split(" ")
    length = chance.randint(len(words) // 2, len(words))
    begin = chance.choice((0, 0, chance.randint(0, len(words) - length)))
    return " ".join(words[begin : begin + length])


if __name__ == "__main__":
    main()
