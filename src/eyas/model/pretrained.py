"""Reading a directory through transformers, without ever running code that lies in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eyas.errors import TargetError


def read_pretrained(kind: Any, directory: Path, what: str, **options: Any) -> Any:
    """`kind.from_pretrained(directory)`, from local files and transformers' own code alone.

    A config's `auto_map` names code of its own repository; transformers would offer to run it on
    stdin unless it is told not to. Raises TargetError where nothing but such code reads the
    directory, and where it has no readable `what`, for example "config".
    """
    try:
        return kind.from_pretrained(
            directory, local_files_only=True, trust_remote_code=False, **options
        )
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        if "trust_remote_code" in str(error):
            raise TargetError(
                f"`{directory}` has a {what} that only code of its own can read (`auto_map`), and"
                " eyas does not run a repository's code",
                hint="give a target whose architecture transformers has built in",
            ) from error
        raise TargetError(
            f"`{directory}` has no {what} that transformers reads: {error}"
        ) from error
