"""The parent of the fuzzer's child: it counts, and ends a child that hangs or died."""

from __future__ import annotations

import json
import os
import select
import signal
import time
import traceback
from collections.abc import Iterator
from mmap import mmap
from pathlib import Path
from typing import Any

from benchmarks.fuzz_child import BEAT, SECONDS, work
from benchmarks.fuzz_tally import Tally

PATIENCE = 12 * SECONDS  # without a new seed: the child waits, or could not be interrupted


class Supervisor:
    """Runs the trials of `tally` in child processes, one after the other."""

    def __init__(self, tally: Tally, workplace: Path, corpus: Path) -> None:
        self._tally = tally
        self._workplace = workplace
        self._corpus = corpus
        self._beat = mmap(-1, BEAT.size)
        self._skip: set[int] = set()
        self._child: int | None = None
        self._children = 0

    def progress(self) -> Iterator[None]:
        """Runs; yields at each message of the child, and at least each second."""
        stop = self._tally.first + self._tally.count
        while self._tally.next < stop:
            yield from self._watch(self._start(stop))

    def end(self) -> None:
        """Ends the child, if one runs."""
        if self._child is not None:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            self._child = None

    def _start(self, stop: int) -> int:
        """Forks a child, and returns the end of the pipe that its messages come from."""
        reading, writing = os.pipe()
        self._children += 1
        self._beat[: BEAT.size] = BEAT.pack(self._tally.next)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(reading)
                place = self._workplace / f"child-{self._children}"
                with os.fdopen(writing, "w") as out:
                    work(place, self._tally.next, stop, self._skip, self._beat, out)
                code = 0
            except BaseException:  # noqa: BLE001 - the parent's handlers are not for its child
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(writing)
        self._child = child
        return reading

    def _watch(self, pipe: int) -> Iterator[None]:
        seed, since = -1, time.monotonic()
        rest = b""
        ended = False
        while not ended:
            ready, _, _ = select.select([pipe], [], [], 1.0)
            if ready:
                chunk = os.read(pipe, 1 << 16)
                ended = not chunk
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._note(json.loads(line))
            (now,) = BEAT.unpack(self._beat[: BEAT.size])
            if now != seed:
                seed, since = now, time.monotonic()
            elif time.monotonic() - since > PATIENCE and self._child is not None:
                os.kill(self._child, signal.SIGKILL)
                self._blame(seed, f"hangs for {PATIENCE} s where nothing interrupts it")
                since = time.monotonic()
            yield
        os.close(pipe)
        self._reap(seed)

    def _reap(self, seed: int) -> None:
        """Collects the child that ended; one that died is the fault of the seed that it was at."""
        if self._child is None:
            return
        _, status = os.waitpid(self._child, 0)
        self._child = None
        if status != 0 and seed not in self._skip:
            self._blame(seed, f"ends the process: {os.waitstatus_to_exitcode(status)}")

    def _blame(self, seed: int, failure: str) -> None:
        self._skip.add(seed)
        self._record({"seed": seed, "failure": failure})

    def _note(self, message: dict[str, Any]) -> None:
        tally = self._tally
        tally.next = message["next"]
        tally.stages = [a + b for a, b in zip(tally.stages, message["stages"], strict=True)]
        for failure in message["failures"]:
            self._record(failure)

    def _record(self, failure: dict[str, object]) -> None:
        self._tally.failures[str(failure["failure"])] += 1
        with self._corpus.open("a", encoding="utf-8") as file:
            file.write(json.dumps(failure) + "\n")
