"""Plain files: a FIFO would block, a link could lead anywhere, a directory is no file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from eyas.errors import CheckpointError, reason_of


def regular_file(directory: Path, name: str) -> Path:
    """The path of file `name` in `directory`.

    Raises CheckpointError when it is missing, is no regular file, or is a link that leaves the
    directory. The one layout whose links may leave it is huggingface_hub's cache, where
    ``snapshots/<commit>/<file>`` points into ``blobs/`` of the same repository.
    """
    path = directory / name
    try:
        linked = stat.S_ISLNK(path.lstat().st_mode)
        mode = path.stat().st_mode
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be opened: {reason_of(error)}", hint="check the path"
        ) from None
    except ValueError:
        raise CheckpointError(f"{str(path)!r} is no path", hint="check the path") from None
    if not stat.S_ISREG(mode):
        raise CheckpointError(f"{path} is not a regular file", hint="check the path")
    if linked:
        _require_inside(path, directory)
    return path


def _require_inside(path: Path, directory: Path) -> None:
    resolved, home = Path(os.path.realpath(path)), Path(os.path.realpath(directory))
    if not resolved.is_relative_to(home) and not _is_hub_blob(resolved, home):
        raise CheckpointError(
            f"{path} is a link that leaves its directory, to {resolved}",
            hint="copy the file into the directory",
        )


def _is_hub_blob(resolved: Path, home: Path) -> bool:
    if home.parent.name != "snapshots":
        return False
    return resolved.parent == home.parent.parent / "blobs"


def read_regular(path: Path, *, max_bytes: int) -> bytes:
    """The bytes of a regular file of at most `max_bytes`; raises CheckpointError otherwise."""
    regular_file(path.parent, path.name)
    try:
        with path.open("rb") as file:
            raw = file.read(max_bytes + 1)
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be read: {reason_of(error)}", hint="check its permissions"
        ) from None
    if len(raw) > max_bytes:
        raise CheckpointError(
            f"{path} is larger than {max_bytes} bytes", hint="check that it is the right file"
        )
    return raw
