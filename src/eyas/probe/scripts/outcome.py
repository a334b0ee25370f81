"""What a probe says of a drafter: where the engine raised, what it logged, one record a job."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coded import Uncodable

_NO_MEMORY = "DefaultCPUAllocator: can't allocate memory"
_LINES = re.compile(r"weight|tensor|mask_hidden|skip|ignor|embed|lm_head", re.IGNORECASE)

Record = Callable[[dict[str, Any], Path], dict[str, Any]]


class Stopped(Exception):  # noqa: N818 - the engine's outcome
    """The engine raised: at which stage, and what."""

    def __init__(self, stage: str, error: BaseException) -> None:
        super().__init__(str(error))
        self.stage = stage
        self.error = error


class Unknown(Exception):  # noqa: N818 - told as one sentence
    """The probe cannot say what the engine would do: its own limit, never the engine's."""


@contextmanager
def stage(name: str) -> Iterator[None]:
    """What raises inside is the engine's doing, at this stage."""
    try:
        yield
    except (Stopped, Unknown, MemoryError):
        raise
    except Exception as error:
        raise Stopped(name, error) from error


def outcome_of(run: Callable[[], None]) -> dict[str, Any]:
    """Runs a probe to its end, or to where the engine raises, and says which.

    The status is "unknown" where the probe came to its own limits, of memory too.
    """
    try:
        run()
    except Stopped as end:
        if _NO_MEMORY not in str(end.error):
            return {"status": "raises", "stage": end.stage, "error": _plain(end.error)}
        return {"status": "unknown", "stage": None, "error": _plain(end.error)}
    except (Unknown, MemoryError, Uncodable) as end:
        return {"status": "unknown", "stage": None, "error": _plain(end)}
    return {"status": "ok", "stage": None, "error": None}


def _plain(error: BaseException) -> dict[str, str]:
    return {"type": type(error).__name__, "message": " ".join(str(error).split())[:1000]}


class Lines(logging.Handler):
    """Collects what the engine's own logger says of weights."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line that warns, or speaks of weights."""
        text = record.getMessage()
        if record.levelno >= logging.WARNING or _LINES.search(text):
            self.lines.append(f"{record.levelname}: {text}"[:500])


def answer_jobs(arguments: list[str], engine: Callable[[], Record]) -> int:
    """Does every job of JOBS.json and appends its record to OUT.jsonl.

    Flushed one by one, so that a reader knows how far a child came that was ended. Returns 3 where
    the engine itself cannot be imported, with one sentence on the standard error.
    """
    jobs = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    try:
        record = engine()
    except Exception as error:  # noqa: BLE001 - told by the parent as one sentence
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 3
    with Path(arguments[1]).open("a", encoding="utf-8") as out:
        for job in jobs:
            # transformers before 5 guesses a model type from a path: no random letters in it
            folder = Path(tempfile.gettempdir()) / f"probe-{os.getpid()}"
            folder.mkdir()
            try:
                line = json.dumps(record(job, folder))
            finally:
                shutil.rmtree(folder)
            out.write(line + "\n")
            out.flush()
    return 0
