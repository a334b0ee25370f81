from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eyas.data.conversation import Conversation
from eyas.errors import UsageError
from eyas.train.vocabulary import count_tokens, draft_vocabulary


def test_the_most_counted_ids_are_kept_ascending() -> None:
    counts = {7: 5.0, 3: 4.0, 9: 1.0, 1: 0.5}
    vocabulary = draft_vocabulary(counts, size=3, vocab_size=12, always=(9,))
    assert vocabulary.ids == (3, 7, 9)
    assert vocabulary.coverage == pytest.approx(10.0 / 10.5)


def test_prompts_count_for_their_share() -> None:
    said = Conversation(id="a", category="c", ids=(1, 1, 2, 2), prompt_length=2, temperature=0.0)
    assert count_tokens([said], 0.25) == {1: 0.5, 2: 2.0}


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
