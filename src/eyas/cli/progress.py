"""Progress on stderr: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

# Off a terminal, how many seconds lie between two lines about the same work.
EVERY = 5.0


@contextmanager
def steps(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A function that says what is being done now."""
    if quiet:
        yield lambda _: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: _line(text)
        return
    with console.status("") as status:
        yield status.update


@contextmanager
def counted(*, quiet: bool) -> Iterator[Callable[[str, int], Callable[[], None]]]:
    """A function that announces work of so many pieces, and returns the one to call after each."""
    if quiet:
        yield lambda _what, _total: lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines
        return
    columns = (
        TextColumn("  {task.description}"),
        BarColumn(bar_width=28),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    # On a terminal the results go above the bar; a file or a pipe gets them as they were written.
    with Progress(
        *columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()
    ) as progress:
        yield lambda what, total: _bar(progress, what, total)


@contextmanager
def copied(what: str, *, quiet: bool) -> Iterator[Callable[[int], None] | None]:
    """A function that is told how many more bytes are done; of how many is not known."""
    from rich.console import Console
    from rich.progress import FileSizeColumn, Progress, SpinnerColumn, TextColumn
    from rich.progress import TransferSpeedColumn as SpeedColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), FileSizeColumn(), TextColumn(what), SpeedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda count: progress.advance(task, count)


def _bar(progress: Progress, what: str, total: int) -> Callable[[], None]:
    for old in progress.task_ids:
        progress.remove_task(old)
    task = progress.add_task(what, total=total)
    return lambda: progress.advance(task)


class _Lines:
    """Progress as lines, for logs."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done = what, total, 0
        self.begun = self.said = monotonic()

    def __call__(self) -> None:
        self.done += 1
        now = monotonic()
        if now - self.said < EVERY and self.done < self.total:
            return
        self.said = now
        left = (now - self.begun) / self.done * (self.total - self.done)
        _line(f"{self.what}: {self.done}/{self.total}, about {left:.0f} s left")


def _line(text: str) -> None:
    sys.stderr.write(f"  {text}\n")
    sys.stderr.flush()
