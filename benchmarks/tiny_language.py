"""A small language with something to learn at every distance, for targets trained in minutes.

A text has a topic, which its first word names, and sentences of `SLOTS` words. Each slot has words
of its own. Which word comes next hangs on the topic, on the word before it and on the word at the
same slot of the sentence before: by a table drawn once. Some words are drawn by chance instead.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TOPICS = 3
SLOTS = 6
WORDS = 48  # in each slot
FIRST = 2  # ids 0 and 1: the end of a text, and an unknown word
VOCABULARY = FIRST + TOPICS + SLOTS * WORDS + 7  # 300: some ids are never written
GROUPS = 3  # of words that mean the same to the table
CHANCE = 0.1

Ids = NDArray[np.int64]


def texts(count: int, length: int, seed: int) -> Ids:
    """`count` texts of `length` ids, [count, length]: the topic, then sentences."""
    table = np.random.default_rng(0).integers(WORDS, size=(TOPICS, SLOTS, GROUPS, GROUPS))
    draw = np.random.default_rng(seed)
    topics = draw.integers(TOPICS, size=count)
    words = draw.integers(WORDS, size=(count, length - 1))
    by_chance = draw.random((count, length - 1)) < CHANCE
    for at in range(SLOTS, length - 1):
        before, above = words[:, at - 1] % GROUPS, words[:, at - SLOTS] % GROUPS
        ruled = table[topics, at % SLOTS, before, above]
        words[:, at] = np.where(by_chance[:, at], words[:, at], ruled)
    slots = np.arange(length - 1) % SLOTS
    ids = FIRST + TOPICS + slots * WORDS + words
    return np.concatenate([FIRST + topics[:, None], ids], axis=1)


def write_tokenizer(directory: Path) -> None:
    """A tokenizer that knows the ids as words w000, w001 …, and a chat template without more."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = {_word(number): number for number in range(VOCABULARY)}
    plain = Tokenizer(models.WordLevel(names, unk_token=_word(1)))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=plain, unk_token=_word(1), eos_token=_word(0))
    made.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    made.save_pretrained(directory)


def write_prompts_file(file: Path, ids: Ids) -> None:
    """Prompts in eyas's form, each the beginning of a text."""
    with file.open("w") as out:
        for number, row in enumerate(ids.tolist()):
            said = " ".join(map(_word, row))
            turn = {"role": "user", "content": said}
            record = {"id": f"text-{number}", "category": "text", "messages": [turn]}
            out.write(json.dumps(record) + "\n")


def _word(number: int) -> str:
    """All as long, for a tokenizer looks for the two that mean something within others."""
    return f"w{number:03}"
