"""Rows of a tensor: in another order, in parts, in another type, and where they lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.checkpoint import Checkpoint, TensorBytes, open_checkpoint, write_checkpoint
from eyas.checkpoint.rows import Cast, Gathered, Made, StoredRows, blocks, span_of, tensor_bytes

HELD = np.arange(60, dtype="<f4").reshape(20, 3)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    tensors = {
        "before": TensorBytes(dtype="F32", shape=(4,), data=bytes(range(16))),
        "w": TensorBytes(dtype="F32", shape=HELD.shape, data=HELD.tobytes()),
    }
    return open_checkpoint(write_checkpoint(tmp_path_factory.mktemp("rows") / "d", {}, tensors))


@given(order=st.lists(st.integers(0, 19), max_size=30), together=st.integers(1, 300))
def test_rows_in_any_order_and_any_pieces(
    checkpoint: Checkpoint, order: list[int], together: int
) -> None:
    gathered = Gathered(StoredRows(checkpoint, "w"), order)
    again = Gathered(gathered, list(reversed(range(len(order)))))
    assert gathered.shape == (len(order), 3)
    assert b"".join(blocks(gathered, together)) == HELD[order].tobytes()
    assert b"".join(blocks(again, together)) == HELD[order][::-1].tobytes()


@given(start=st.integers(0, 20), length=st.integers(0, 20))
def test_a_part_lies_where_its_rows_lie(checkpoint: Checkpoint, start: int, length: int) -> None:
    part = Gathered(StoredRows(checkpoint, "w"), range(start, min(start + length, 20)))
    expected = HELD[start : start + length].tobytes()
    assert b"".join(blocks(part, 24)) == expected
    span = span_of(part)
    if expected:
        assert span is not None
        assert span.file.read_bytes()[span.start :][: len(expected)] == expected


def test_a_part_of_a_part(checkpoint: Checkpoint) -> None:
    part = Gathered(Gathered(StoredRows(checkpoint, "w"), range(5, 15)), range(2, 4))
    span = span_of(part)
    assert span is not None
    assert span.file.read_bytes()[span.start :][:24] == HELD[7:9].tobytes()
    assert b"".join(blocks(part)) == HELD[7:9].tobytes()


def test_other_rows_lie_nowhere(checkpoint: Checkpoint) -> None:
    stored = StoredRows(checkpoint, "w")
    assert span_of(Gathered(stored, [1, 0])) is None
    assert span_of(Cast(stored, "BF16")) is None
    assert span_of(Made("F32", (1,), bytes(4))) is None


def test_what_is_written_is_what_is_read(checkpoint: Checkpoint, tmp_path: Path) -> None:
    rows = {
        "whole": StoredRows(checkpoint, "w"),
        "turned": Gathered(StoredRows(checkpoint, "w"), [3, 1, 2]),
        "half": Cast(StoredRows(checkpoint, "w"), "F16"),
        "made": Made("I64", (2,), bytes(16)),
    }
    tensors = {name: tensor_bytes(one) for name, one in rows.items()}
    written = open_checkpoint(write_checkpoint(tmp_path / "out", {}, tensors))
    assert written.read_bytes("whole") == HELD.tobytes()
    assert written.read_bytes("turned") == HELD[[3, 1, 2]].tobytes()
    assert written.read_bytes("half") == HELD.astype("<f2").tobytes()
    assert written.read_bytes("made") == bytes(16)
