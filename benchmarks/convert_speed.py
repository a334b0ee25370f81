"""How long `eyas convert` takes beside `cp -r` of the same drafter, and in how much memory.

    python -m benchmarks.convert_speed --folder DIR [--runs 5]

Makes in DIR a drafter of 3 GB of random bytes, with the sizes of Kimi-K2.5's and under the names of
speculators; then copies it, and converts it for sglang@0.5.10.post1 (names and config change, no
byte of a weight), in turn, and removes all of it. Both are timed until they are on the disk: after
`cp -r`, which does not wait for that, every file and directory that it made is flushed with fsync,
as eyas does before it renames. What `cp -r` alone takes is printed as well. The source stays in the
page cache for both.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

from eyas.checkpoint import TensorBytes, open_checkpoint, write_checkpoint
from eyas.checkpoint.header import tensor_nbytes
from eyas.checkpoint.staging import sync, sync_entry
from eyas.demo import kimi

ENGINE = "sglang@0.5.10.post1"
# With its head over as many tokens, the drafter of the story has 3 GB.
DRAFT_VOCAB = 102_400
_PIECE = 16 * 2**20
_EYAS = [sys.executable, "-c", "from eyas.cli import main; raise SystemExit(main())"]


@dataclass(frozen=True, slots=True)
class Round:
    """One copy and one conversion: seconds, and the conversion's peak memory in bytes."""

    copied: float
    copied_and_flushed: float
    converted: float
    processor: float
    memory: int


def build(directory: Path) -> int:
    """Writes the drafter as the new `directory`; returns how many bytes its tensors have."""
    with tempfile.TemporaryDirectory(dir=directory.parent) as folder:
        kimi.write_kimi_drafter(Path(folder) / "flat")
        kimi.write_kimi_as_saved(Path(folder) / "saved", open_checkpoint(Path(folder) / "flat"))
        story = open_checkpoint(Path(folder) / "saved")
    kept = [draft * kimi.VOCAB // DRAFT_VOCAB for draft in range(DRAFT_VOCAB)]
    mask = bytearray(kimi.VOCAB)
    for token in kept:
        mask[token] = 1
    offsets = struct.pack(f"<{DRAFT_VOCAB}q", *(token - i for i, token in enumerate(kept)))
    maps = {"d2t": offsets, "t2d": bytes(mask)}
    tensors = {}
    for seed, (name, header) in enumerate(story.tensors.items()):
        shape = tuple(DRAFT_VOCAB if n == kimi.DRAFT_VOCAB else n for n in header.shape)
        data = maps.get(name) or partial(_random, seed, tensor_nbytes(header.dtype, shape))
        tensors[name] = TensorBytes(dtype=header.dtype, shape=shape, data=data)
    write_checkpoint(directory, {**story.config, "draft_vocab_size": DRAFT_VOCAB}, tensors)
    return sum(tensor.nbytes for tensor in tensors.values())


def _random(seed: int, nbytes: int) -> Iterator[bytes]:
    generator = random.Random(seed)
    for start in range(0, nbytes, _PIECE):
        yield generator.randbytes(min(_PIECE, nbytes - start))


def measure(source: Path, out: Path) -> Round:
    """Copies `source` to `out`, then converts it to `out`; nothing is left."""

    def settle() -> None:
        shutil.rmtree(out, ignore_errors=True)
        os.sync()

    settle()
    begin = perf_counter()
    subprocess.run(["cp", "-r", source, out], check=True)
    copied = perf_counter() - begin
    sync(out)
    sync_entry(out.parent)
    flushed = perf_counter() - begin
    settle()
    converted, processor, memory = _child(
        [*_EYAS, "convert", str(source), str(out), "--to", ENGINE]
    )
    settle()
    return Round(copied, flushed, converted, processor, memory)


def _child(command: Sequence[str]) -> tuple[float, float, int]:
    """Seconds, seconds of the processor, and peak memory in bytes, of a command that succeeds."""
    with tempfile.TemporaryFile() as errors:
        begin = perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        seconds = perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            sys.exit(errors.read().decode())
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def tell(nbytes: int, rounds: Sequence[Round], show: Callable[[str], None] = print) -> None:
    """Prints the medians and the ratios of `rounds` over a drafter of `nbytes`."""
    copied, flushed, converted, processor = (
        statistics.median(getattr(one, field) for one in rounds)
        for field in ("copied", "copied_and_flushed", "converted", "processor")
    )
    show(f"{nbytes:,} bytes, medians of {len(rounds)} rounds on {os.cpu_count()} processors")
    show(f"cp -r, then fsync of all    {flushed:6.2f} s")
    show(f"cp -r alone                 {copied:6.2f} s")
    show(f"eyas convert                {converted:6.2f} s, of the processor {processor:.2f} s")
    paired = sorted(r.converted / r.copied_and_flushed for r in rounds)
    show(f"eyas / cp, both on the disk {converted / flushed:6.2f}   rounds {_each(paired)}")
    paired = sorted(r.converted / r.copied for r in rounds)
    show(f"eyas / cp that is not       {converted / copied:6.2f}   rounds {_each(paired)}")
    show(f"peak memory of eyas         {max(r.memory for r in rounds) / 2**20:6.0f} MiB")


def _each(values: Sequence[float]) -> str:
    return " ".join(f"{value:.2f}" for value in values)


def main() -> None:
    """Build, measure, and remove."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="needs 7 GB of room")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        source, out = Path(folder) / "drafter", Path(folder) / "out"
        nbytes = build(source)
        measure(source, out)  # the modules are compiled once, and the memory is the system's
        tell(nbytes, [measure(source, out) for _ in range(arguments.runs)])


if __name__ == "__main__":
    main()
