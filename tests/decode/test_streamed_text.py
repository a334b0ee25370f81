from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.decode.streamed_text import UNFINISHED, Detokeniser, Marks


def of_bytes(ids: Sequence[int]) -> str:
    """A tokenizer whose tokens are single bytes (a mock): the hardest case for whole characters."""
    return bytes(ids).decode("utf-8", "replace")


@given(st.text(max_size=20))
def test_pieces_are_whole_characters_and_join_to_the_text(text: str) -> None:
    stream = Detokeniser(decode=of_bytes)
    pieces = [stream.push(byte) for byte in text.encode()]
    assert all(UNFINISHED not in piece or UNFINISHED in text for piece in pieces)
    assert "".join(pieces) + stream.finish() == text


def test_a_character_that_never_ends_is_shown_at_the_end() -> None:
    stream = Detokeniser(decode=of_bytes)
    assert [stream.push(byte) for byte in "a€".encode()[:-1]] == ["a", "", ""]
    assert stream.finish() == UNFINISHED


@pytest.mark.parametrize("text", ["Rivers: Łaba, 長江 🏞️ and the Nile.", "  two  spaces\n\n# x"])
def test_the_real_tokenizer(smollm2: Path, text: str) -> None:
    from eyas.model.load import load_tokenizer

    tokenizer = load_tokenizer(smollm2)
    ids = tokenizer(text)["input_ids"]
    stream = Detokeniser(decode=lambda some: str(tokenizer.decode(list(some))))
    pieces = [stream.push(token) for token in ids]
    assert not [piece for piece in pieces if UNFINISHED in piece]
    assert "".join(pieces) + stream.finish() == text


def test_brackets_stand_round_runs() -> None:
    marks = Marks(opening="[", closing="]", paint=None)
    told = [
        ("The", False),
        (" River", True),
        (" Nile", True),
        ("", True),
        (".", False),
        (" A", True),
    ]
    text = "".join(marks.piece(piece, drafted=drafted) for piece, drafted in told)
    assert text + marks.end() == "The[ River Nile].[ A]"
    assert marks.end() == ""


def test_colour_needs_no_brackets() -> None:
    marks = Marks(opening="[", closing="]", paint=lambda piece: f"<{piece}>")
    assert marks.piece("a", drafted=True) + marks.piece("b", drafted=False) == "<a>b"
    assert marks.end() == ""
