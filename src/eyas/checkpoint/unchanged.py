"""Unchanged: whether the files of a checkpoint are still those that were opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eyas.checkpoint.checkpoint import Checkpoint, Format
from eyas.checkpoint.header import read_headers
from eyas.checkpoint.hub import INDEX
from eyas.checkpoint.json_file import read_json_object
from eyas.errors import CheckpointError, reason_of

_HINT = "run it again when nothing writes there"
_State = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The files of a checkpoint, each with its inode, size in bytes and time of change in ns.

    A file of the Hub is known by its commit, and is not among them.
    """

    files: Mapping[Path, _State]

    @classmethod
    def since(cls, checkpoint: Checkpoint) -> Unchanged:
        """What to ask later; raises CheckpointError where `checkpoint` is history already.

        Its config and headers were read some time ago, so they are read once more and compared.
        """
        index = (INDEX,) if (checkpoint.directory / INDEX).is_file() else ()
        local = [file for file in checkpoint.files if file not in checkpoint.remote]
        names = dict.fromkeys((checkpoint.config_file, *index, *local))
        found = cls({checkpoint.directory / name: _state(checkpoint, name) for name in names})
        if checkpoint.format is Format.SAFETENSORS:
            _require_as_opened(checkpoint, local)
        return found

    def require(self) -> None:
        """Raises CheckpointError where a file has another state than it had."""
        for file, before in self.files.items():
            try:
                changed = _state_of(file) != before
            except OSError:
                changed = True
            if changed:
                raise _changed(file)


def _require_as_opened(checkpoint: Checkpoint, files: list[str]) -> None:
    config = checkpoint.directory / checkpoint.config_file
    if read_json_object(config, hint=_HINT) != checkpoint.config:
        raise _changed(config)
    for file in files:
        before = {n: header for n, header in checkpoint.tensors.items() if header.file == file}
        if read_headers(checkpoint.directory, file) != before:
            raise _changed(checkpoint.directory / file)


def _state(checkpoint: Checkpoint, name: str) -> _State:
    path = checkpoint.directory / name
    try:
        return _state_of(path)
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be opened: {reason_of(error)}", hint="check the path"
        ) from None


def _state_of(path: Path) -> _State:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _changed(file: Path) -> CheckpointError:
    return CheckpointError(f"{file} changed while it was read", hint=_HINT)
