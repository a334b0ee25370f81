"""Answers of the target as text, each piece with who had drafted it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from eyas.decode.streamed_text import Decode, Detokeniser
from eyas.diagnose.outcome import Sample


class Mark(StrEnum):
    """Which readings had drafted a token, so that a round accepted it."""

    KEPT = "kept"  # as trained and, where an engine was run, as served
    LOST = "lost"  # as trained alone
    GAINED = "gained"  # as served alone
    OWN = "own"  # neither: a draft was rejected there, or the round was over


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Text of one or more tokens with the same mark."""

    mark: Mark
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One answer in pieces."""

    id: str
    category: str
    pieces: tuple[Piece, ...]


def marked(samples: Sequence[Sample], decode: Decode) -> tuple[Passage, ...]:
    """The samples as text; `decode` is the tokenizer's, over a list of ids."""
    return tuple(
        Passage(id=sample.id, category=sample.category, pieces=_pieces(sample, decode))
        for sample in samples
    )


def _pieces(sample: Sample, decode: Decode) -> tuple[Piece, ...]:
    said: list[Piece] = []
    detokeniser = Detokeniser(decode=decode)
    served = sample.trained if sample.served is None else sample.served
    mark = Mark.OWN
    for token, as_trained, as_served in zip(sample.ids, sample.trained, served, strict=True):
        mark = _mark(as_trained, as_served)
        _add(said, mark, detokeniser.push(token))
    _add(said, mark, detokeniser.finish())
    return tuple(said)


def _add(said: list[Piece], mark: Mark, text: str) -> None:
    if said and said[-1].mark is mark:
        said[-1] = Piece(mark=mark, text=said[-1].text + text)
    elif text:
        said.append(Piece(mark=mark, text=text))


def _mark(as_trained: bool, as_served: bool) -> Mark:
    if as_trained:
        return Mark.KEPT if as_served else Mark.LOST
    return Mark.GAINED if as_served else Mark.OWN
