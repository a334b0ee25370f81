"""Span: bytes that lie in a file as they are, so that the kernel can copy them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from eyas.errors import CheckpointError, reason_of

# Long enough to cost nothing, short enough that a stop is heard and the disk is kept at work.
_AT_ONCE = 64 * 2**20
_BUFFER = 2**20
# The kernel cannot copy between these two files, or cannot say which of them failed.
_UNABLE = {
    errno.EBADF,
    errno.EINVAL,
    errno.EIO,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
    errno.EPERM,
    errno.EXDEV,
}


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes of `file` from `start` on; how many they are is said elsewhere."""

    file: Path
    start: int


def copy_span(
    span: Span, nbytes: int, out: FileIO, at: int, wrote: Callable[[int], None] | None = None
) -> None:
    """Copies the first `nbytes` of `span` to `out` from byte `at` on, where nothing is yet.

    Holes stay holes. `wrote` is told how many more bytes are where they belong. Raises
    CheckpointError where the source cannot be read or ends too soon, OSError where `out` refuses.
    """
    shift = at - span.start
    position, end = span.start, span.start + nbytes
    with reading(span.file) as source:
        for start, stop in data_runs(source, position, end):
            if wrote is not None:
                wrote(start - position)
            position = start
            while position < stop:
                count = _copy(source, position, min(stop - position, _AT_ONCE), out, shift)
                position += count
                if wrote is not None:
                    wrote(count)
    if wrote is not None:
        wrote(end - position)


def data_runs(file: FileIO, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The ranges of bytes from `start` to `stop` that are no holes, as the file system knows them.

    Raises CheckpointError where the file ends before `stop`.
    """
    position = start
    while position < stop:
        begin, end = _next_run(file, position, stop)
        # A file that was cut meanwhile has no more data, which is no hole.
        if os.fstat(file.fileno()).st_size < stop:
            raise _too_short(file, stop)
        if begin < end:
            yield begin, end
        position = end


def fill(file: FileIO, view: memoryview, position: int) -> None:
    """Fills `view` with what `file` has from `position` on; raises CheckpointError if it cannot."""
    file.seek(position)
    filled = 0
    while filled < len(view):
        try:
            count = file.readinto(view[filled:])
        except OSError as error:
            raise _unreadable(file.name, error) from None
        if not count:
            raise _too_short(file, position + len(view))
        filled += count


@contextmanager
def reading(path: Path) -> Iterator[FileIO]:
    """The file `path`, opened without a buffer; raises CheckpointError where it cannot be."""
    try:
        file = FileIO(path, "rb")
    except OSError as error:
        raise _unreadable(path, error) from None
    with file:
        yield file


def _next_run(file: FileIO, position: int, stop: int) -> tuple[int, int]:
    """The first run of data from `position` on, cut at `stop`; empty where there is none."""
    if not hasattr(os, "SEEK_DATA"):  # Windows
        return position, stop
    try:
        begin = os.lseek(file.fileno(), position, os.SEEK_DATA)
        return min(begin, stop), min(os.lseek(file.fileno(), begin, os.SEEK_HOLE), stop)
    except OSError as error:
        if error.errno == errno.ENXIO:  # nothing but a hole up to the end of the file
            return stop, stop
        if error.errno == errno.EINVAL:  # a file system that does not tell
            return position, stop
        raise _unreadable(file.name, error) from None


def _copy(source: FileIO, position: int, count: int, out: FileIO, shift: int) -> int:
    """Copies at most `count` bytes from `position` on, and returns how many."""
    if hasattr(os, "copy_file_range"):  # Linux
        try:
            copied = os.copy_file_range(
                source.fileno(), out.fileno(), count, position, position + shift
            )
        except OSError as error:
            if error.errno not in _UNABLE:
                raise
        else:
            # Some file systems of old kernels answer 0 for bytes that they have.
            if copied:
                return copied
    piece = memoryview(bytearray(min(count, _BUFFER)))
    fill(source, piece, position)
    out.seek(position + shift)
    written = out.write(piece)
    assert written is not None  # only of a descriptor that does not block
    return written


def _unreadable(path: object, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"{path} cannot be read: {reason_of(error)}", hint="check its permissions"
    )


def _too_short(file: FileIO, needed: int) -> CheckpointError:
    return CheckpointError(
        f"{file.name} has {os.fstat(file.fileno()).st_size} bytes where {needed} are needed",
        hint="fetch or export the file again",
    )
