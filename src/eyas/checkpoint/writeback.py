"""Writeback: files on their way to the disk while there is still something to write."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from eyas.checkpoint.staging import sync

if TYPE_CHECKING:
    from concurrent.futures import Future

_EVERY = 512 * 2**20


class Writeback:
    """Flushes files in a thread of its own; whatever the disk refuses is raised at the end.

    The kernel lets written pages wait, and a flush at the end waits for all of them; begun early,
    it takes its time beside the copying. Begun too often, it makes that wait for the journal.
    """

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(1, thread_name_prefix="eyas-writeback")
        self._begun: list[Future[None]] = []
        self._waiting = 0  # bytes since the last flush

    def __enter__(self) -> Self:
        """The writeback itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Waits until all is on the disk; raises OSError where it is not."""
        self._pool.shutdown(wait=True, cancel_futures=kind is not None)
        if kind is None:
            for flush in self._begun:
                flush.result()

    def wrote(self, file: Path, count: int) -> None:
        """Notes `count` more bytes of `file`, and begins to flush them now and then."""
        self._waiting += count
        if self._waiting >= _EVERY and (not self._begun or self._begun[-1].done()):
            self.finish(file)

    def finish(self, file: Path) -> None:
        """Begins to flush `file` as it is now."""
        self._waiting = 0
        self._begun.append(self._pool.submit(sync, file))
