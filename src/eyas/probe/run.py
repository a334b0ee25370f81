"""Running a probe: the engine's Python in a child with limits, which is ended with its children."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Protocol

from eyas.errors import ProbeError, reason_of
from eyas.probe.observed import Record, read_records
from eyas.probe.recipes.recipe import Recipe, without_ours

_LOOK = 0.2  # seconds between two looks at a child
_SCRIPTS = Path(__file__).parent / "scripts"
_NO_ENGINE = 3  # the script's exit code where the engine cannot be imported


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a child may take: `seconds` for each drafter, `memory` in bytes with its children."""

    seconds: float = 300.0
    memory: int = 8 * 2**30


class Asked(Protocol):
    """What a script of an engine is given, such as a `Job`."""

    def plain(self) -> dict[str, Any]:
        """It as its JSON has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """The Python that an engine is installed for, and the variables that it wants."""

    recipe: Recipe
    python: Path
    variables: Mapping[str, str]


def ask(
    interpreter: Interpreter,
    jobs: Sequence[Asked],
    limits: Limits,
    advance: Callable[[], None] = lambda: None,
) -> list[Record | ProbeError]:
    """The record of what the engine did with each of `jobs`, many in one child.

    `advance` is called for each. Where a drafter makes the child hang, die or eat memory, its place
    has the error, and a new child goes on behind it. Raises ProbeError where the engine cannot be
    started at all.
    """
    outcomes: list[Record | ProbeError] = []
    while len(outcomes) < len(jobs):
        rest = jobs[len(outcomes) :]
        records, end = _child(interpreter, rest, limits, advance)
        outcomes += records
        if len(records) < len(rest):
            outcomes.append(end or _silent(interpreter))
            advance()
    return outcomes


def _silent(interpreter: Interpreter) -> ProbeError:
    return ProbeError(
        f"{interpreter.python} ended without an answer", hint="name the engine's own Python"
    )


def _child(
    interpreter: Interpreter, jobs: Sequence[Asked], limits: Limits, advance: Callable[[], None]
) -> tuple[list[Record], ProbeError | None]:
    """The records of one child, and why it ended before all were there."""
    with tempfile.TemporaryDirectory(prefix="eyas-probe-") as folder:
        file, out, log = (Path(folder) / name for name in ("jobs.json", "out.jsonl", "log"))
        file.write_text(json.dumps([job.plain() for job in jobs]), encoding="utf-8")
        script = _SCRIPTS / interpreter.recipe.script
        line = [str(interpreter.python), "-B", str(script), str(file), str(out)]
        with log.open("wb") as said:
            try:
                child = subprocess.Popen(
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    cwd=folder,
                    env=_variables(interpreter),
                    start_new_session=True,
                )
            except OSError as error:
                raise ProbeError(
                    f"{interpreter.python} cannot be started: {reason_of(error)}",
                    hint=_install_hint(interpreter),
                ) from None
            try:
                reason = _watch(child, out, limits, advance)
            finally:
                _end(child)
        if child.returncode == _NO_ENGINE:
            raise ProbeError(
                f"{interpreter.python} cannot import {interpreter.recipe.engine}: {_last(log)}",
                hint=_install_hint(interpreter),
            )
        records = read_records(out)
        if child.returncode == 0 and reason is None:
            return records, None
        if reason is None:
            reason = f"ended with {child.returncode}: {_last(log)}"
        if not records and child.returncode in (1, 2) and not out.is_file():
            raise ProbeError(
                f"the probe of {interpreter.recipe.engine} {reason}",
                hint=_install_hint(interpreter),
            )
        return records, ProbeError(
            f"the probe of {interpreter.recipe.engine} {reason}",
            hint="give it more with --seconds or --memory, or judge by eyas check",
        )


def _variables(interpreter: Interpreter) -> dict[str, str]:
    threads = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    threads["PYTHONHASHSEED"] = "0"  # an error that prints a set is the same each time
    return without_ours(os.environ) | threads | dict(interpreter.variables)


def _install_hint(interpreter: Interpreter) -> str:
    return f"run: eyas engine install {interpreter.recipe.engine}"


def _watch(
    child: subprocess.Popen[bytes], out: Path, limits: Limits, advance: Callable[[], None]
) -> str | None:
    """Waits for `child`; why it must be ended, or None where it ended itself."""
    _limit(child.pid, limits.memory)
    answered, since = 0, monotonic()
    while True:
        ended = child.poll() is not None
        lines = out.read_bytes().count(b"\n") if out.is_file() else 0
        for _ in range(lines - answered):
            advance()
        if lines > answered:
            answered, since = lines, monotonic()
        if ended:
            return None
        if monotonic() - since > limits.seconds:
            return f"gave no answer in {limits.seconds:.0f} s and was ended"
        used = sum(_memory(process) for process in _group(child.pid))
        if used > limits.memory:
            return f"took more than {limits.memory / 2**30:.1f} GiB of memory and was ended"
        sleep(_LOOK)


def _limit(process: int, memory: int) -> None:
    """Lets allocations beyond `memory` fail at once, where the system can."""
    if sys.platform == "linux":
        import resource

        with suppress(ProcessLookupError, PermissionError):
            resource.prlimit(process, resource.RLIMIT_DATA, (memory, memory))


def _group(leader: int) -> Iterable[int]:
    """The processes in the group of `leader`, itself included."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        process = int(entry.name)
        try:
            if os.getpgid(process) == leader:
                found.append(process)
        except ProcessLookupError:
            continue
    return found


def _memory(process: int) -> int:
    """The bytes of memory of its own that `process` holds; a mapped file is none."""
    try:
        text = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    line = next((line for line in text.splitlines() if line.startswith("RssAnon:")), None)
    return 0 if line is None else int(line.split()[1]) * 1024


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends `child` and every process that it started and left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _last(log: Path) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
    return next((line[:300] for line in reversed(lines) if line), "it said nothing")
