"""Write docs/real-drafters.md: what eyas says of reconstructions of public drafters.

    python benchmarks/real_drafters.py SHARED/cases/real [--out docs/real-drafters.md]

Each folder there has a drafter's config.json, the names, types and shapes of its tensors in
tensors.json, and the sizes of its target in target_config.json. The drafter is rebuilt as a sparse
file, true in its headers and its vocabulary map, read by its dialect, and checked with its target
for the newest version of each engine that eyas has a contract for. No cell is written by hand.
"""

from __future__ import annotations

import argparse
import json
import struct
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eyas import dialects
from eyas.checkpoint import open_checkpoint, open_target, write_sparse
from eyas.checks import Severity, check
from eyas.checks.report import EngineOutcome, Outcome, Report
from eyas.engines import ENGINES, EngineRef, Launch
from eyas.spec import Eagle3Spec

ROOT = Path(__file__).resolve().parents[1]
HEAD = """# Public drafters, and what eyas says of them

Reconstructions: the configs and tensor headers of public drafters as far as they could be observed,
and the layout of the tool that made them for the rest. A verdict is about these files, with their
target, and may differ for what is published. *Not checked* is no pass. Written by

    python benchmarks/real_drafters.py FOLDER

A verdict names the rules that found something; `eyas explain CODE` says what each means. In
brackets is where the first of them is read in the engine's source.
"""


def rebuilt(folder: Path, place: Path) -> Path:
    """The drafter of `folder`, written sparse to `place`: maps are real, weights are holes."""
    config = json.loads((folder / "config.json").read_text())
    document = json.loads((folder / "tensors.json").read_text())
    tensors = document["tensors"]
    headers = {name: (one["dtype"], tuple(one["shape"])) for name, one in tensors.items()}
    return write_sparse(place, config, headers, dict(_maps(tensors, document["vocab_size"])))


def _maps(tensors: Mapping[str, Any], vocab_size: int) -> Iterator[tuple[str, bytes]]:
    """d2t and t2d of a vocabulary that keeps ids at even distances."""
    d2t = next((one for name, one in tensors.items() if name.endswith("d2t")), None)
    if d2t is None:
        return
    count = d2t["shape"][0]
    kept = [i * vocab_size // count for i in range(count)]
    offsets = [token - i for i, token in enumerate(kept)]
    letter = {"I64": "q", "I32": "i"}[d2t["dtype"]]
    mask = bytearray(vocab_size)
    for token in kept:
        mask[token] = 1
    for name in tensors:
        if name.endswith("d2t"):
            yield name, struct.pack(f"<{count}{letter}", *offsets)
        if name.endswith("t2d"):
            yield name, bytes(mask)


def rows(folder: Path) -> Iterator[list[str]]:
    """Name, dialect, kind and one verdict for each engine, of every drafter in `folder`."""
    refs = [EngineRef.parse(f"{engine.name}@{engine.newest}") for engine in ENGINES]
    with tempfile.TemporaryDirectory() as scratch:
        for case in sorted(path for path in folder.iterdir() if path.is_dir()):
            checkpoint = open_checkpoint(rebuilt(case, Path(scratch) / case.name))
            target = open_target(case / "target_config.json")
            dialect, spec = dialects.read(checkpoint)
            report = check(checkpoint, refs, target=target, launch=Launch())
            kind = "EAGLE-3" if isinstance(spec, Eagle3Spec) else spec.name
            verdicts = [
                verdict(report, outcome).replace(checkpoint.location, "DRAFT")
                for outcome in report.engines
            ]
            yield [case.name.replace("__", "/"), dialect.name, kind, *verdicts]


def verdict(report: Report, outcome: EngineOutcome) -> str:
    """One engine's outcome in a cell: the word, the rules behind it, and the first one's source."""
    if outcome.outcome is Outcome.SKIP:
        return f"not checked: {outcome.reason}"
    whole = (outcome.engine, outcome.version, outcome.runner)
    about = [f for f in report.findings if (f.engine, f.version, f.runner) == whole or not f.engine]
    worst = Severity.ERROR if outcome.outcome is Outcome.FAIL else Severity.WARNING
    told = [finding for finding in about if finding.severity is worst]
    rules = ", ".join(dict.fromkeys(f"{finding.code} {finding.name}" for finding in told))
    source = next((finding.source for finding in told if finding.source), None)
    words = [str(outcome.outcome) + (f": {rules}" if rules else "")]
    refused = next((finding for finding in told if finding.code == "C101"), None)
    if refused is not None:
        words.append(refused.message.removeprefix(f"{outcome.label} "))
    elif outcome.reason:
        words.append(outcome.reason)
    return "; ".join(words) + (f" ({source})" if source else "")


def table(found: list[list[str]]) -> str:
    """The rows as a Markdown table."""
    head = ["drafter", "dialect", "kind", *(f"{e.name} {e.newest}" for e in ENGINES)]
    lines = [head, ["---"] * len(head), *found]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in r) + " |" for r in lines)


def main() -> None:
    """Writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder of the reconstructions")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "real-drafters.md")
    arguments = parser.parse_args()
    found = list(rows(arguments.folder))
    arguments.out.write_text(f"{HEAD}\n{table(found)}\n")
    print(f"{len(found)} drafters in {arguments.out}")


if __name__ == "__main__":
    main()
