"""Write docs/real-drafters.md: what eyas says of reconstructions of public drafters.

    python benchmarks/real_drafters.py SHARED/cases/real [--out docs/real-drafters.md]

Each folder there has a drafter's config.json, the names, types and shapes of its tensors in
tensors.json, and the sizes of its target in target_config.json. The drafter is rebuilt as a sparse
file, true in its headers and its vocabulary map, read by its dialect, and checked with its target
for the newest version of each engine that eyas has a contract for. Then it is planned for each of
them and for each dialect, with a tokenizer of the target's size at hand and without its weights.
No cell is written by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eyas import dialects
from eyas.checkpoint import (
    Checkpoint,
    TargetFacts,
    open_checkpoint,
    open_target,
    write_sparse,
)
from eyas.checks import Severity, check
from eyas.checks.report import EngineOutcome, Outcome, Report
from eyas.convert import DialectGoal, Goal, Plan
from eyas.convert.search import search
from eyas.dialects import WRITABLE
from eyas.engines import ENGINES, EngineRef, Launch
from eyas.errors import ConversionError, TargetNeededError, UnjudgedError
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


CONVERSIONS = """
## What `eyas convert` makes of them

What is written for an engine, or ✗ with the reason of the refusal. A target's weights are not at
hand here: ! says that they would have to be, and ? that no contract is there. Dialects in brackets
need those weights too.

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


def goals() -> list[Goal]:
    """The newest version of each engine, runner by runner, and each dialect that is written."""
    engines = [
        EngineRef(name=engine.name, version=engine.newest, runner=runner)
        for engine in ENGINES
        for runner in engine.runners or (None,)
    ]
    return [*engines, *map(DialectGoal, WRITABLE)]


def target_of(case: Path, place: Path) -> TargetFacts:
    """The target of `case` in the new directory `place`, with a tokenizer that is not its own.

    A GGUF file needs one. All but six of its ids have no token, as those of a padded vocabulary.
    """
    tokens = {token: i for i, token in enumerate(["a", "b", "c", "d", "ab", "cd"])}
    model = {"type": "BPE", "vocab": tokens, "merges": ["a b", "c d"]}
    tokenizer = {"model": model, "pre_tokenizer": {"type": "ByteLevel", "use_regex": True}}
    place.mkdir(parents=True)
    (place / "config.json").write_text((case / "target_config.json").read_text())
    (place / "tokenizer.json").write_text(json.dumps(tokenizer))
    return open_target(place)


Outcomes = Mapping[str, Plan | ConversionError]


def outcomes(checkpoint: Checkpoint, target: TargetFacts) -> Outcomes:
    """What each goal's conversion would write, or why there is none."""
    found: dict[str, Plan | ConversionError] = {}
    for goal in goals():
        try:
            found[str(goal)] = search(checkpoint, goal, target=target)
        except ConversionError as error:
            found[str(goal)] = error
    return found


def conversions(folder: Path) -> Iterator[tuple[str, Outcomes]]:
    """Each drafter in `folder` by its name, and what becomes of it for each goal."""
    with tempfile.TemporaryDirectory() as scratch:
        for case in sorted(path for path in folder.iterdir() if path.is_dir()):
            checkpoint = open_checkpoint(rebuilt(case, Path(scratch) / case.name))
            target = target_of(case, Path(scratch) / f"{case.name}-target")
            yield case.name.replace("__", "/"), outcomes(checkpoint, target)


def conversion_table(found: Iterable[tuple[str, Outcomes]]) -> str:
    """Every drafter's conversions as a Markdown table, and the sentences of the refusals."""
    engines = [str(goal) for goal in goals() if not isinstance(goal, DialectGoal)]
    head = ["drafter", *engines, "dialects"]
    lines = [head, ["---"] * len(head)]
    notes: dict[str, int] = {}
    for drafter, made in found:
        cells = [_converted(made[engine], notes) for engine in engines]
        written = [name for name in WRITABLE if isinstance(made[name], Plan)]
        wanting = [f"({n})" for n in WRITABLE if isinstance(made[n], TargetNeededError)]
        lines.append([drafter, *cells, ", ".join([*written, *wanting]) or "none"])
    told = "\n".join(f"{number}. {note}" for note, number in notes.items())
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + f"\n\n{told}\n"


_OPENING = re.compile(r"^\S+ cannot be written so that \S+ computes what was trained: ")
_MISSING = re.compile(r"; the (embedding|head) of \S+ is not at hand: .*")


def _converted(found: Plan | ConversionError, notes: dict[str, int]) -> str:
    """What is written, or a mark and the number of its reason, which is put into `notes`."""
    if isinstance(found, Plan):
        return f"{found.after}, {found.manner}"
    if isinstance(found, UnjudgedError):
        return "?"
    told = _MISSING.sub(r"; the target's \1 is not at hand", _OPENING.sub("", found.message))
    mark = "!" if isinstance(found, TargetNeededError) else "✗"
    return f"{mark} {notes.setdefault(told, len(notes) + 1)}"


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
    text = f"{HEAD}\n{table(found)}\n{CONVERSIONS}{conversion_table(conversions(arguments.folder))}"
    arguments.out.write_text(text, encoding="utf-8")
    print(f"{len(found)} drafters in {arguments.out}")


if __name__ == "__main__":
    main()
