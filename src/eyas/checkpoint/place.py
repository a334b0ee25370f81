"""Where the files of a location are: a local directory, a local file, or the Hub's cache."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from eyas.errors import CheckpointError


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A directory with config.json, the one weight file that was named, and the Hub commit."""

    directory: Path
    file: str | None = None
    revision: str | None = None


def locate(location: str | Path, *, weights: bool) -> Place:
    """The directory of `location`; a Hub id is fetched, with its `weights` if asked.

    Raises CheckpointError when there is no such place, FetchError when a download fails.
    """
    from eyas.checkpoint.hub import fetch, parse_hub_id

    typed = str(location)
    if not typed.strip():
        raise CheckpointError("the location is empty", hint="give a directory or a Hub id")
    path = os.path.expanduser(typed)
    if not typed.startswith("hf://"):
        if os.path.isdir(path):
            return Place(directory=Path(path))
        if os.path.exists(path):
            return _single_file(Path(path))
        if os.path.islink(path):
            raise CheckpointError(f"{typed} is a link to nothing", hint="check the path")
    hub_id = None if isinstance(location, Path) else parse_hub_id(typed)
    if hub_id is None:
        raise CheckpointError(
            f"there is no file or directory {typed!r}",
            hint="give a directory, a .safetensors file or a Hub id such as org/name",
        )
    directory, revision = fetch(hub_id, weights=weights)
    return Place(directory=directory, revision=revision)


def _single_file(path: Path) -> Place:
    if path.suffix != ".safetensors":
        raise CheckpointError(
            f"{path} is neither a directory nor a .safetensors file",
            hint="give the directory that holds config.json and model.safetensors",
        )
    return Place(directory=path.parent, file=path.name)
