from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eyas.data.conversation import Conversation
from eyas.errors import UsageError
from eyas.train.vocabulary import (
    DraftVocabulary,
    count_tokens,
    draft_vocabulary,
    read_vocabulary,
    write_vocabulary,
)


def test_the_most_counted_ids_are_kept_ascending() -> None:
    counts = {7: 5.0, 3: 4.0, 9: 1.0, 1: 0.5}
    vocabulary = draft_vocabulary(counts, size=3, vocab_size=12, always=(9,))
    assert vocabulary.ids == (3, 7, 9)
    assert vocabulary.coverage == pytest.approx(10.0 / 10.5)


def said(category: str, ids: tuple[int, ...], prompt_length: int) -> Conversation:
    return Conversation(
        id="a", category=category, ids=ids, prompt_length=prompt_length, temperature=0.0
    )


def test_prompts_count_for_their_share() -> None:
    counts = count_tokens([said("c", (1, 1, 2, 2), 2)], 0.25)
    assert counts == pytest.approx({1: 0.2, 2: 0.8})


def test_categories_weigh_the_same_however_much_they_say() -> None:
    counts = count_tokens([said("c", (1, 2), 1), said("d", (1, *[3, 4] * 50), 1)], 0.0)
    assert counts == pytest.approx({1: 0.0, 2: 0.5, 3: 0.25, 4: 0.25})


@given(
    counts=st.dictionaries(st.integers(0, 49), st.floats(0.5, 99), max_size=50),
    size=st.integers(1, 50),
    always=st.sets(st.integers(0, 49), max_size=1),
)
def test_the_maps_are_each_others_inverse(
    counts: dict[int, float], size: int, always: set[int]
) -> None:
    vocabulary = draft_vocabulary(counts, size=size, vocab_size=50, always=always)
    assert len(vocabulary.ids) == size
    assert always <= set(vocabulary.ids)
    ids_V = torch.arange(size) + vocabulary.d2t_V
    assert ids_V.tolist() == list(vocabulary.ids) == sorted(set(vocabulary.ids))
    assert vocabulary.t2d_V.nonzero()[:, 0].tolist() == ids_V.tolist()


@pytest.mark.parametrize("size", [0, 13])
def test_a_size_that_does_not_fit(size: int) -> None:
    with pytest.raises(UsageError, match="does not fit the target's 12"):
        draft_vocabulary({}, size=size, vocab_size=12, always=())


VOCABULARY = DraftVocabulary(ids=(3, 7, 9), vocab_size=12, coverage=0.9375)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "vocabulary.json"
    write_vocabulary(file, VOCABULARY)
    assert read_vocabulary(file, 12) == VOCABULARY
    assert list(tmp_path.iterdir()) == [file]


def test_a_write_that_fails_leaves_what_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "vocabulary.json"
    write_vocabulary(file, VOCABULARY)

    def full(path: Path, text: str, encoding: str) -> None:
        path.touch()
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no space left"):
        write_vocabulary(file, DraftVocabulary(ids=(1,), vocab_size=12, coverage=0.5))
    assert read_vocabulary(file, 12) == VOCABULARY


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[3, 7, 9]", "is no draft vocabulary"),
        ("{", "is no draft vocabulary"),
        ('{"ids": [3], "vocab_size": 12}', "is no draft vocabulary"),
        ('{"ids": [3], "vocab_size": 99, "coverage": 1}', "a target of 99 ids, not of 12"),
        ('{"ids": [7, 3], "vocab_size": 12, "coverage": 1}', "ascending ids below 12"),
        ('{"ids": [3, 12], "vocab_size": 12, "coverage": 1}', "ascending ids below 12"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "vocabulary.json").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_vocabulary(tmp_path / "vocabulary.json", 12)
