"""Score eyas's diagnosis on damaged drafters that nobody tuned on, and on sound ones.

    python -m benchmarks.score_diagnose [--seed N] [--singles N] [--pairs N] [--sound N]
    python -m benchmarks.score_diagnose --resume
    python -m benchmarks.score_diagnose --seed N --only INDEX --keep

Draws a new seed from the clock unless one is given, plants faults in trained drafters, and runs
eyas's diagnosis on each, under a name that tells nothing. Of a fault that shows in acceptance
alone, the parameters are drawn again until it costs some, by a measure of its own. Outcomes are
kept in FOLDER/SEED as they come, the labels beside them; the drafters go when they are diagnosed.
`--resume` goes on with the newest run, whose counts are to be the same. Prints the scores and what
was taken for what; exits with 1 below a floor.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.diagnose_bases import NAMES, bases_of
from benchmarks.diagnose_run import Run
from benchmarks.diagnose_trial import diagnosed
from benchmarks.diagnose_verdicts import PAIR, SINGLE, SOUND, STORY, below_floor, right, table

from eyas.checkpoint import cache_dir


def main() -> int:
    """Scores what the command line asks for, and returns the exit code."""
    options = _options()
    folder = options.folder or cache_dir() / "score-diagnose"
    seed = _newest(folder) if options.resume else options.seed
    if seed is None:
        seed = time.time_ns() % 10**9
    forms = folder / "forms"
    bases = bases_of(options.bases, forms)
    run = Run(seed=seed, folder=folder / str(seed), forms=forms, bases=bases, diagnose=diagnosed)
    run.folder.mkdir(parents=True, exist_ok=True)
    counts = {SINGLE: options.singles, PAIR: options.pairs, SOUND: options.sound, STORY: 1}
    print(f"seed {seed}, in {run.folder}", flush=True)
    done = {outcome["index"] for outcome in run.outcomes()}
    for item in run.items(counts):
        if item.index not in (options.only or (item.index,)) or (
            item.index in done and options.only is None
        ):
            continue
        outcome = run.score(item, keep=options.keep)
        met = "right" if right(outcome["kinds"], outcome["causes"]) else "WRONG"
        planted = " + ".join(outcome["kinds"]) or f"sound, {outcome['variation']}"
        said = ", ".join(outcome["causes"][:3]) or "no cause"
        print(f"{item.index:4} {met} {planted}: {said}  {outcome['seconds']:.1f} s", flush=True)
        if options.only is not None:
            print(outcome["said"])
    outcomes = run.outcomes()
    print("\n" + table(outcomes))
    return 1 if below_floor(outcomes) else 0


def _newest(folder: Path) -> int | None:
    runs = sorted(folder.glob("*/outcomes.jsonl"), key=lambda file: file.stat().st_mtime)
    return int(runs[-1].parent.name) if runs else None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.score_diagnose",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, help="of the run; from the clock unless given")
    parser.add_argument("--resume", action="store_true", help="go on with the newest run")
    parser.add_argument("--singles", type=int, default=110, help="drafters with one fault")
    parser.add_argument("--pairs", type=int, default=60, help="drafters with two faults")
    parser.add_argument("--sound", type=int, default=32, help="drafters with none")
    parser.add_argument("--bases", nargs="+", default=NAMES, choices=NAMES, help="trained drafters")
    parser.add_argument("--only", type=int, nargs="+", help="these drafters alone, by their index")
    parser.add_argument("--keep", action="store_true", help="leave the drafters on disk")
    parser.add_argument("--folder", type=Path, help="for runs; eyas's cache unless given")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
