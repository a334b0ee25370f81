"""A file that exists is whole: it is written under another name, then renamed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(file: Path) -> Iterator[Path]:
    """Yields the path to write; it becomes `file` at the end, or is removed when something raises.

    The path names this process, so that two that write the same file do not mix. What processes
    that were killed had begun to write as `file` is removed.
    """
    before, after = f"{file.name}.", ".unfinished"
    remove_leftovers(file.parent, before, after)
    unfinished = file.with_name(f"{before}{os.getpid()}{after}")
    try:
        yield unfinished
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


def remove_leftovers(directory: Path, before: str, after: str) -> None:
    """Removes the files and folders `before`PROCESS`after` whose process runs no more."""
    for path in directory.iterdir():
        if path.name.startswith(before) and path.name.endswith(after):
            process = path.name[len(before) : -len(after)]
            if process.isdecimal() and not _runs(int(process)):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    """Whether another process of this number may be running."""
    if process == os.getpid():  # a number that is used again, as in a container
        return False
    if os.name == "nt":  # there signal 0 would end it
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
