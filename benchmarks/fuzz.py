"""Fuzz `eyas check` with mutants of sound drafters, each made from its seed.

    python -m benchmarks.fuzz --first 0 --count 1000000
    python -m benchmarks.fuzz --first 0 --count 1000000 --resume
    python -m benchmarks.fuzz --replay 4711

Every mutant is opened, recognised, read as trained, read as engine versions serve it, checked and
rendered as JSON; some by every version, and in every form. Trials run in a child
process with a limit on its memory; one that takes too long is interrupted, or ended from outside.
Failures are written as seeds to FOLDER/failures.jsonl; `--resume` goes on from FOLDER/state.json.
Exits with 1 when there is a failure.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.fuzz_child import replay
from benchmarks.fuzz_supervisor import Supervisor
from benchmarks.fuzz_tally import Tally

TELL_EVERY = 5.0  # seconds
MEMORY_DISK = Path("/dev/shm")


def main() -> int:
    """Runs what the command line asks for, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1_000_000, help="how many seeds")
    parser.add_argument("--resume", action="store_true", help="go on where the state file ends")
    parser.add_argument("--folder", type=Path, help="for state and failures")
    parser.add_argument("--replay", type=int, metavar="SEED", help="show one trial")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends tidily, to be resumed
    workplace = Path(
        tempfile.mkdtemp(prefix="eyas-fuzz-", dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None)
    )
    try:
        if options.replay is not None:
            return replay(workplace, options.replay)
        name = f"eyas-fuzz-{options.first}-{options.count}"
        folder = options.folder or Path(tempfile.gettempdir()) / name
        folder.mkdir(parents=True, exist_ok=True)
        state = folder / "state.json"
        tally = Tally(first=options.first, count=options.count, next=options.first)
        if options.resume and state.is_file():
            tally = Tally.load(state)
        return _run(tally, folder, workplace, fresh=tally.done == 0)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)


def _run(tally: Tally, folder: Path, workplace: Path, *, fresh: bool) -> int:
    corpus = folder / "failures.jsonl"
    if fresh:
        corpus.unlink(missing_ok=True)
    told = started = time.monotonic()
    before = tally.seconds
    supervisor = Supervisor(tally, workplace, corpus)
    try:
        for _ in supervisor.progress():
            now = time.monotonic()
            tally.seconds = before + now - started
            if now - told >= TELL_EVERY:
                told = now
                print(tally.line(), file=sys.stderr, flush=True)
                tally.save(folder / "state.json")
    except KeyboardInterrupt:
        print("interrupted: the same command with --resume goes on", file=sys.stderr)
        return 130
    finally:
        supervisor.end()
        tally.save(folder / "state.json")
    print(tally.line())
    for signature, number in tally.failures.most_common():
        print(f"  {number} x {signature}")
    if tally.failures:
        print(f"seeds: {corpus}")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
