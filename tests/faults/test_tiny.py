"""The language and the targets that stand in for forms beside Llama's."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from benchmarks import tiny_bases
from benchmarks.tiny_language import (
    CHANCE,
    FIRST,
    GROUPS,
    SLOTS,
    TOPICS,
    VOCABULARY,
    WORDS,
    texts,
    write_prompts_file,
    write_tokenizer,
)

from eyas.data.answers import chat_ids
from eyas.data.prompts import read_prompts
from eyas.model.load import load_target, load_tokenizer


def test_a_word_follows_from_the_one_before_and_the_one_above() -> None:
    ids = texts(400, 72, seed=1)
    assert ids.max() < VOCABULARY
    assert np.array_equal(ids, texts(400, 72, seed=1))
    topics, words = ids[:, 0], (ids[:, 1:] - FIRST - TOPICS) % WORDS
    found: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for topic, row in zip(topics.tolist(), words.tolist(), strict=True):
        for at in range(SLOTS, len(row)):
            key = (topic, at % SLOTS, row[at - 1] % GROUPS, row[at - SLOTS] % GROUPS)
            found[key][row[at]] += 1

    assert len(found) == TOPICS * SLOTS * GROUPS**2
    ruled = sum(counts.most_common(1)[0][1] for counts in found.values())
    share = ruled / sum(counts.total() for counts in found.values())
    assert abs(share - (1 - CHANCE)) < 0.02  # the rest is drawn by chance
    # the word before alone does not tell, nor does the one above
    assert len({counts.most_common(1)[0][0] for counts in found.values()}) > WORDS // 2


def test_prompts_come_back_as_the_ids_that_they_were(tmp_path: Path) -> None:
    ids = texts(3, 16, seed=2)
    write_tokenizer(tmp_path / "target")
    write_prompts_file(tmp_path / "prompts.jsonl", ids)
    _save(tiny_bases.NAMES[0], tmp_path / "target")

    tokenizer = load_tokenizer(tmp_path / "target")
    prompts = read_prompts(tmp_path / "prompts.jsonl")
    assert [chat_ids(tokenizer, prompt) for prompt in prompts] == ids.tolist()


@pytest.mark.parametrize("name", tiny_bases.NAMES)
def test_a_target_of_each_form_is_read(name: str, tmp_path: Path) -> None:
    _save(name, tmp_path)
    target = load_target(tmp_path)

    assert target.facts.num_layers == tiny_bases.LAYERS
    assert target.facts.architecture.lower().startswith(name)


def _save(name: str, directory: Path) -> None:
    tiny_bases._model(name).save_pretrained(directory)
