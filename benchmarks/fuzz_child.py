"""The child process that makes trials: limited in memory, interrupted where one takes too long."""

from __future__ import annotations

import gc
import json
import resource
import signal
import struct
from collections.abc import Container
from dataclasses import asdict
from mmap import mmap
from pathlib import Path
from types import FrameType
from typing import IO

from benchmarks.fuzz_trial import STAGES, Laboratory, Outcome

SECONDS = 5.0  # of the processor, for one trial, which takes 2 ms
MEMORY = 1 << 30  # bytes of private memory; mapped files are not counted
BATCH = 200  # trials between two messages
BEAT = struct.Struct("<q")


class TooLong(BaseException):
    """Raised inside a trial that takes too long; no `except Exception` holds it up."""


def work(
    workplace: Path, first: int, stop: int, skip: Container[int], beat: mmap, out: IO[str]
) -> None:
    """Makes the trials from `first` up to `stop`, and writes messages as lines of JSON.

    `beat` always holds the seed in work, so that the parent sees what the child hangs in.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, _interrupt)
    laboratory = Laboratory(workplace)
    gc.freeze()
    stages, failures = [0] * (len(STAGES) + 1), []
    for seed in range(first, stop):
        beat[: BEAT.size] = BEAT.pack(seed)
        outcome = Outcome(stage=0) if seed in skip else _timed(laboratory, seed)
        stages[outcome.stage] += 1
        if outcome.failure is not None:
            failures.append({"seed": seed, **asdict(outcome)})
        if failures or seed + 1 == stop or (seed + 1 - first) % BATCH == 0:
            message = {"next": seed + 1, "stages": stages, "failures": failures}
            out.write(json.dumps(message) + "\n")
            out.flush()
            stages, failures = [0] * (len(STAGES) + 1), []


def replay(workplace: Path, seed: int) -> int:
    """Shows the trial of `seed`, and returns the exit code."""
    signal.signal(signal.SIGPROF, _interrupt)
    laboratory = Laboratory(workplace)
    outcome = _timed(laboratory, seed)
    reached = STAGES[outcome.stage - 1] if outcome.stage else "not opened"
    print(f"seed {seed}: {reached}; {outcome.failure or 'no failure'}")
    print("\n".join(f"  {step}" for step in laboratory.recipe))
    print(outcome.trace or laboratory.refusal)
    return 0 if outcome.failure is None else 1


def _timed(laboratory: Laboratory, seed: int) -> Outcome:
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return laboratory.attempt(seed)
    except TooLong as error:
        import traceback

        trace = "".join(traceback.format_exception(error))
        return Outcome(stage=0, failure=f"more than {SECONDS} s", trace=trace)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise TooLong
