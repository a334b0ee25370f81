"""Writeback: files on their way to the disk while there is still something to write."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from eyas.checkpoint.staging import sync

if TYPE_CHECKING:
    from concurrent.futures import Future


class Writeback:
    """Flushes files in a thread of its own; whatever the disk refuses is raised at the end.

    A file is flushed once, when it is written: flushes while it grew made the conversion of 3 GB
    slower on ext4 (benchmarks/convert_speed.py), which commits its journal for each.
    """

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(1, thread_name_prefix="eyas-writeback")
        self._begun: list[Future[None]] = []

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

    def finish(self, file: Path) -> None:
        """Begins to flush `file`, which is written."""
        self._begun.append(self._pool.submit(sync, file))
