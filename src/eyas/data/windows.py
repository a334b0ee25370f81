"""What a drafter will be measured on must not be what it was trained on: shared runs of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from eyas.data.prompts import Prompt

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# GPT-3's measure of contamination (arXiv 2005.14165, appendix C), there in words.
WINDOW = 13


class Windows:
    """Every run of 13 tokens in the turns of some prompts, without the chat template's own."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompts: Iterable[Prompt]) -> None:
        self._held: set[tuple[int, ...]] = set()
        for prompt in prompts:
            for turn in prompt.messages:
                ids = tokenizer(turn.content, add_special_tokens=False).input_ids
                self._held.update(_runs(ids))

    def __len__(self) -> int:
        """Number of distinct runs."""
        return len(self._held)

    def touch(self, ids: Sequence[int]) -> bool:
        """Whether one of them occurs in `ids`."""
        return not self._held.isdisjoint(_runs(ids))


def _runs(ids: Sequence[int]) -> Iterable[tuple[int, ...]]:
    return (tuple(ids[first : first + WINDOW]) for first in range(len(ids) - WINDOW + 1))
