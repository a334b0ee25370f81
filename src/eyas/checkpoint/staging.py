"""Staging: what is written appears under its name when it is whole and on the disk, or never."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eyas.checkpoint.place import GGUF_SUFFIX
from eyas.checkpoint.whole_file import remove_leftovers
from eyas.errors import CheckpointError, reason_of


@contextmanager
def staged(final: Path) -> Iterator[Path]:
    """Yields a hidden sibling of `final`, to be made a directory or a file, and renames it after.

    Before the rename everything in it is flushed to the disk. What raises, a stop that was asked
    for included, leaves nothing; what a killed process left is removed. Raises CheckpointError when
    there is something at `final` already, or when the disk refuses.
    """
    require_new(final)
    draft, done = _sibling(final), False
    made: list[Path] = []
    try:
        made = _missing(final.parent)
        final.parent.mkdir(parents=True, exist_ok=True)
        _clear_leftovers(final)
        yield draft
        sync(draft)
        _place(draft, final)
        sync_entry(final.parent)
        done = True
    except OSError as error:
        raise CheckpointError(
            f"{final} cannot be written: {reason_of(error)}", hint="check the disk and the path"
        ) from None
    finally:
        if not done:
            _remove(draft)
            for folder in made:
                with suppress(OSError):  # another process has put something into it
                    folder.rmdir()


def require_new(final: Path) -> None:
    """Raises CheckpointError when there is something at `final`, be it a dangling link."""
    if os.path.lexists(final):
        raise CheckpointError(
            f"{final} exists already, and nothing is overwritten",
            hint="name a new one, or remove it first",
        )


def sync(path: Path) -> None:
    """Waits until a file, or a directory with the files in it, is on the disk."""
    if path.is_dir():
        for inner in path.iterdir():
            sync(inner)
    sync_entry(path)


def sync_entry(path: Path) -> None:
    """Waits until a file's bytes, or the names in a directory, are on the disk."""
    if os.name != "nt":
        flags = os.O_RDONLY
    elif path.is_dir():  # Windows cannot open a directory; there the rename alone has to do
        return
    else:
        flags = os.O_RDWR
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _place(draft: Path, final: Path) -> None:
    """Renames `draft`; of several processes that write the same, the first has the name."""
    require_new(final)  # a rename would replace an empty directory
    if draft.is_dir():
        try:
            draft.rename(final)
        except OSError:
            require_new(final)  # it appeared a moment ago
            raise
        return
    try:
        os.link(draft, final)  # unlike a rename it replaces no file
    except FileExistsError:
        require_new(final)
        raise
    except OSError:  # a file system without hard links
        draft.rename(final)
    else:
        draft.unlink()


def _sibling(final: Path, process: int | str | None = None) -> Path:
    """The hidden sibling of `final` that a process writes, this one unless another is named."""
    # A GGUF file is known by its suffix, and is read again before it has its name.
    kept = GGUF_SUFFIX if final.suffix == GGUF_SUFFIX else ""
    return final.with_name(f".eyas-{final.name}.{process or os.getpid()}.partial{kept}")


def _clear_leftovers(final: Path) -> None:
    """Removes what a process that was killed had begun to write as `final`."""
    before, _, after = _sibling(final, "#").name.rpartition("#")
    remove_leftovers(final.parent, before, after)


def _missing(folder: Path) -> list[Path]:
    """`folder` and its parents as far as they are not there, the innermost first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def _remove(draft: Path) -> None:
    with suppress(OSError):  # it is not there, or nothing there can be changed
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink()
