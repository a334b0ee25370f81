"""Where the files of a location are: a local directory, a local file, or the Hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eyas.checkpoint.hub import Part, fetch, parse_hub_id
from eyas.checkpoint.repository import Repository
from eyas.errors import CheckpointError

GGUF_SUFFIX = ".gguf"
PICKLE_SUFFIX = ".bin"
# The ends of weight files that can be named by themselves.
SINGLE_FILES = (".safetensors", GGUF_SUFFIX, PICKLE_SUFFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A directory with config.json, the one weight file that was named, and the Hub commit.

    What is not in the directory is in the `repository`, where there is one.
    """

    directory: Path
    file: str | None = None
    revision: str | None = None
    repository: Repository | None = None


def locate(location: str | Path, part: Part, *, also: Sequence[str] = ()) -> Place:
    """The directory of `location`; of a Hub id as much as `part` needs is fetched.

    With the weights come the files whose names are like one of `also`.

    Raises CheckpointError when there is no such place, FetchError when a download fails.
    """

    typed = str(location)
    if not typed.strip():
        raise CheckpointError("the location is empty", hint="give a directory or a Hub id")
    if not typed.startswith("hf://"):
        local = _local(typed)
        if local is not None:
            return local
    hub_id = None if isinstance(location, Path) else parse_hub_id(typed)
    if hub_id is None:
        raise CheckpointError(
            f"there is no file or directory {typed!r}",
            hint="give a directory, a .safetensors, .bin or .gguf file, or a Hub id such as"
            " org/name",
        )
    parent = Path(typed).parent
    if not typed.startswith("hf://") and parent.is_dir():
        # A slip in a local path should not become a question to the Hub.
        raise CheckpointError(
            f"there is no file or directory {typed!r}",
            hint=f"check what is in {parent}, or write hf://{typed} for the Hub's",
        )
    found = fetch(hub_id, part, also=also)
    return Place(directory=found.directory, revision=found.commit, repository=found.repository)


def _local(typed: str) -> Place | None:
    try:
        path = Path(typed).expanduser()
        if path.is_dir():
            return Place(directory=path)
        if path.exists():
            return _single_file(path)
        if path.is_symlink():
            raise CheckpointError(f"{typed} is a link to nothing", hint="check the path")
    except (OSError, ValueError, RuntimeError) as error:
        # A name that is too long, a directory that may not be entered, an unknown ~user.
        reason = (getattr(error, "strerror", None) or str(error)).rstrip(".")
        raise CheckpointError(
            f"{typed[:200]!r} cannot be opened: {reason.lower()}", hint="check the path"
        ) from None
    return None


def _single_file(path: Path) -> Place:
    if path.suffix not in SINGLE_FILES:
        raise CheckpointError(
            f"{path} is neither a directory nor a .safetensors, .bin or .gguf file",
            hint="give the directory that holds config.json and model.safetensors",
        )
    return Place(directory=path.parent, file=path.name)
