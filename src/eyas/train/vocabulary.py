"""The draft vocabulary: the ids that the target writes most often."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from eyas.checkpoint import whole_file
from eyas.data.conversation import Conversation
from eyas.errors import UsageError
from eyas.spec import most_counted


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftVocabulary:
    """Target ids kept by the drafter, ascending, and the share of counted tokens they cover."""

    ids: tuple[int, ...]
    vocab_size: int
    coverage: float

    @property
    def ids_V(self) -> Tensor:
        """The kept ids as a tensor."""
        return torch.tensor(self.ids, dtype=torch.int64)

    @property
    def d2t_V(self) -> Tensor:
        """Offsets: target id = i + d2t[i]."""
        return self.ids_V - torch.arange(len(self.ids))

    @property
    def t2d_V(self) -> Tensor:
        """Over the target's vocabulary: whether an id is kept."""
        kept = torch.zeros(self.vocab_size, dtype=torch.bool)
        kept[self.ids_V] = True
        return kept


def count_tokens(conversations: Iterable[Conversation], prompt_share: float) -> dict[int, float]:
    """The share of each id in answers, plus `prompt_share` of its share in prompts.

    Every category of conversation weighs the same, however long its answers are.
    """
    by_category: dict[str, defaultdict[int, float]] = {}
    for conversation in conversations:
        counts = by_category.setdefault(conversation.category, defaultdict(float))
        for token in conversation.answer_ids:
            counts[token] += 1.0
        for token in conversation.ids[: conversation.prompt_length]:
            counts[token] += prompt_share
    shares: defaultdict[int, float] = defaultdict(float)
    for counts in by_category.values():
        total = sum(counts.values())
        for token, count in counts.items():
            shares[token] += count / total / len(by_category)
    return dict(shares)


def draft_vocabulary(
    counts: Mapping[int, float], *, size: int, vocab_size: int, always: Iterable[int]
) -> DraftVocabulary:
    """The `size` most counted ids, `always` among them; ids never seen fill up from the lowest.

    Raises UsageError when `size` exceeds the target's vocabulary.
    """
    if not 0 < size <= vocab_size:
        raise UsageError(f"a draft vocabulary of {size} does not fit the target's {vocab_size}")
    ids = most_counted(counts, among=range(vocab_size), size=size, always=always)
    total = sum(counts.values())
    covered = sum(counts.get(token, 0.0) for token in ids)
    return DraftVocabulary(
        ids=ids, vocab_size=vocab_size, coverage=covered / total if total else 0.0
    )


def write_vocabulary(file: Path, vocabulary: DraftVocabulary) -> None:
    """Write a vocabulary as JSON, whole or not at all."""
    with whole_file(file) as unfinished:
        unfinished.write_text(json.dumps(asdict(vocabulary)) + "\n", encoding="utf-8")


def read_vocabulary(file: Path, vocab_size: int) -> DraftVocabulary:
    """The vocabulary that `write_vocabulary` wrote.

    Raises UsageError when it is none, or not one of a target with `vocab_size` ids.
    """
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
        ids = tuple(int(token) for token in held["ids"])
        size, coverage = int(held["vocab_size"]), float(held["coverage"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"`{file}` is no draft vocabulary: {error!r}") from error
    if size != vocab_size:
        raise UsageError(f"`{file}` was made for a target of {size} ids, not of {vocab_size}")
    if not ids or list(ids) != sorted(set(ids)) or ids[0] < 0 or ids[-1] >= size:
        raise UsageError(f"`{file}` does not hold ascending ids below {size}")
    return DraftVocabulary(ids=ids, vocab_size=size, coverage=coverage)
