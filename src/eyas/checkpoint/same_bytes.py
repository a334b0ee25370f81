"""Whether two tensors hold the same bytes, in the memory of a few pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import FileIO

from eyas.checkpoint.checkpoint import Checkpoint
from eyas.checkpoint.spans import Span, data_runs, fill, reading

# Two pieces fit into the second cache of a processor: compared there, they cost half as much.
_PIECE = 2**18


def same_bytes(before: Checkpoint, name: str, after: Checkpoint, renamed: str) -> bool:
    """Whether tensor `name` of `before` has type, shape and bytes of `renamed` in `after`.

    Both are read, except where both files have a hole. Raises CheckpointError where one of them
    cannot be.
    """
    old, new = before.tensors.get(name), after.tensors.get(renamed)
    if old is None or new is None or (old.dtype, old.shape) != (new.dtype, new.shape):
        return False
    left, right = before.span(name), after.span(renamed)
    if left is None or right is None:
        return _same_streams(before.chunks(name), after.chunks(renamed))
    return same_spans(left, right, old.nbytes)


def same_spans(left: Span, right: Span, nbytes: int) -> bool:
    """Whether the first `nbytes` bytes of two spans are equal."""
    one, other = bytearray(_PIECE), bytearray(_PIECE)
    with reading(left.file) as left_file, reading(right.file) as right_file:
        for start, stop in _data_in_either(left_file, left, right_file, right, nbytes):
            for at in range(start, stop, _PIECE):
                if stop - at < _PIECE:
                    one, other = bytearray(stop - at), bytearray(stop - at)
                elif len(one) < _PIECE:
                    one, other = bytearray(_PIECE), bytearray(_PIECE)
                fill(left_file, memoryview(one), left.start + at)
                fill(right_file, memoryview(other), right.start + at)
                if one != other:  # of two whole bytearrays, this is one memcmp
                    return False
    return True


def _data_in_either(
    left_file: FileIO, left: Span, right_file: FileIO, right: Span, nbytes: int
) -> Iterator[tuple[int, int]]:
    """The ranges, counted from the starts, in which one of the spans is no hole."""
    from heapq import merge

    runs = merge(_runs(left_file, left, nbytes), _runs(right_file, right, nbytes))
    begin = end = 0
    for start, stop in runs:
        if start > end:
            yield begin, end
            begin = start
        end = max(end, stop)
    yield begin, end


def _runs(file: FileIO, span: Span, nbytes: int) -> Iterator[tuple[int, int]]:
    for start, stop in data_runs(file, span.start, span.start + nbytes):
        yield start - span.start, stop - span.start


def _same_streams(left: Iterable[bytes], right: Iterable[bytes]) -> bool:
    """Whether two streams are equal, in whatever pieces they come."""
    lefts, rights = iter(left), iter(right)
    one = other = memoryview(b"")
    while True:
        one = one or _next_piece(lefts)
        other = other or _next_piece(rights)
        common = min(len(one), len(other))
        if not common:
            return len(one) == len(other)
        if bytes(one[:common]) != bytes(other[:common]):
            return False
        one, other = one[common:], other[common:]


def _next_piece(pieces: Iterator[bytes]) -> memoryview:
    """The next piece that is not empty; an empty one at the end."""
    return memoryview(next((piece for piece in pieces if piece), b""))
