"""Write docs/compatibility.md: which drafters each engine serves, and what convert does about it.

    python -m scripts.compatibility_page

A tiny drafter of each kind is written by each dialect that can state it, and planned for each
engine, version and runner, and for each dialect. No cell is written by hand.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from scripts.specimen_tensors import LAYERS
from scripts.specimens import KINDS, LOCATION, Specimen, make_target, specimens

from eyas.checkpoint import TargetFacts
from eyas.convert import DialectGoal, Goal
from eyas.convert.recheck import objections
from eyas.convert.search import search
from eyas.dialects import WRITABLE
from eyas.engines import ENGINES, Engine, EngineRef
from eyas.engines.sglang.contract import contract_of
from eyas.engines.version import version_of
from eyas.errors import ConversionError, TargetNeededError, UnjudgedError
from eyas.spec import Eagle3Spec

PUBLISHED = Path(__file__).resolve().parents[1] / "docs" / "compatibility.md"
# What PyPI has of SGLang and vLLM in the ranges of their contracts, and llama.cpp's build.
RELEASES = {
    "sglang": [
        "0.4.9",
        "0.4.9.post1",
        "0.4.9.post2",
        "0.4.9.post3",
        "0.4.9.post4",
        "0.4.9.post5",
        "0.4.9.post6",
        "0.4.10",
        "0.4.10.post1",
        "0.4.10.post2",
        "0.5.1",
        "0.5.1.post1",
        "0.5.1.post2",
        "0.5.1.post3",
        "0.5.2",
        "0.5.3",
        "0.5.3.post1",
        "0.5.3.post2",
        "0.5.3.post3",
        "0.5.4",
        "0.5.4.post1",
        "0.5.4.post2",
        "0.5.4.post3",
        "0.5.5",
        "0.5.5.post1",
        "0.5.5.post2",
        "0.5.5.post3",
        "0.5.6",
        "0.5.6.post1",
        "0.5.6.post2",
        "0.5.7",
        "0.5.8",
        "0.5.8.post1",
        "0.5.9",
        "0.5.10",
        "0.5.10.post1",
        "0.5.11",
        "0.5.12",
        "0.5.12.post1",
        "0.5.13",
        "0.5.13.post1",
        "0.5.14",
        "0.5.15",
        "0.5.15.post1",
        "0.5.16",
        "0.5.17",
        "0.5.18",
        "0.5.19",
        "0.5.20",
        "0.5.21",
        "0.5.22",
        "0.5.23",
    ],
    "vllm": ["0.32.0", "0.33.0"],
    "llamacpp": ["11549"],
}
NAMES = {"sglang": "SGLang", "vllm": "vLLM", "llamacpp": "llama.cpp"}
SERVED, CONVERTED, REFUSED, UNKNOWN = "✓", "→", "✗", "?"
HEAD = f"""# What each engine serves, and what `eyas convert` does about it

| | |
| --- | --- |
| {SERVED} | exact as it is: nothing to convert; in the last table, can be written so exactly |
| {CONVERTED} a | exact after `eyas convert`; the letter says what is written |
| {REFUSED} 1 | no file makes it exact: `eyas convert` refuses with the sentence of that number |
| {UNKNOWN} | not known: eyas has no contract of how this engine drafts with this kind |

*Exact* means that the engine's contract, read for the files, gives the facts that the producer
trained with, and that every tensor lands. A row is a tiny drafter that the dialect's own writer
made, for a Llama target of {LAYERS} layers whose directory is at hand with its weights and its
tokenizer. An embedding that a drafter stores has the target's numbers, unless its row says
otherwise, and so has the head of a DFlash or DSpark drafter. Another target may change an answer:
ask `eyas check DRAFT --target MODEL`. A kind is listed for the dialects that can state it, those
with equal answers together; versions whose answers are equal share a column.

Written by

    python -m scripts.compatibility_page
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What becomes of a drafter: a mark, and what is written or why nothing is."""

    mark: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One goal, or several with equal outcomes: its title, and an outcome for each specimen."""

    title: str
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The specimens, and the columns of each part of the page by its heading."""

    made: Sequence[Specimen]
    parts: Mapping[str, Sequence[Column]]


def matrix() -> Matrix:
    """Every specimen against every goal."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "drafters"
        place.mkdir()
        target = make_target(Path(scratch) / "target")
        made = specimens(target, place)
        parts = {NAMES[e.name]: list(_of_engine(e, made, target)) for e in ENGINES}
        parts["From dialect to dialect"] = [
            Column(title=name, outcomes=_outcomes(DialectGoal(name), made, target))
            for name in WRITABLE
        ]
    return Matrix(made=made, parts=parts)


def page(found: Matrix) -> str:
    """The whole page."""
    tables = (_section(title, found.made, columns) for title, columns in found.parts.items())
    return "\n".join([HEAD, *tables])


def answering(engine: Engine, version: str) -> Hashable:
    """What of `version` answers; two versions with equal ones read every drafter alike.

    Of SGLang's contract the version's own name and the line of a claim change no answer for a
    target that all versions know, as Llama is.
    """
    if engine.name != "sglang":
        return version
    oldest = version_of(engine.oldest)
    return replace(contract_of(version_of(version), ""), number=oldest, width_check="")


def outcome(specimen: Specimen, goal: Goal, target: TargetFacts) -> Outcome:
    """What `goal` makes of `specimen`: as it is, where that is an engine, or as it is converted."""
    engine = not isinstance(goal, DialectGoal)
    if engine and not isinstance(specimen.spec, Eagle3Spec):
        return Outcome(mark=UNKNOWN)
    try:
        planned = search(specimen.checkpoint, goal, target=target)
        if not engine or _is_exact(specimen, goal, target, copied=planned.copied):
            return Outcome(mark=SERVED)
    except TargetNeededError:
        raise
    except UnjudgedError:
        return Outcome(mark=UNKNOWN)
    except ConversionError as error:
        return Outcome(mark=REFUSED, note=_reason(error.message))
    return Outcome(mark=CONVERTED, note=f"{planned.after}, {planned.manner}")


def _is_exact(specimen: Specimen, goal: Goal, target: TargetFacts, *, copied: bool) -> bool:
    spec = specimen.spec
    assert isinstance(spec, Eagle3Spec)
    return not objections(spec, target, specimen.checkpoint, goal, copied=copied)


def _of_engine(engine: Engine, made: Sequence[Specimen], target: TargetFacts) -> Iterator[Column]:
    for runner in engine.runners or (None,):
        known: dict[Hashable, tuple[Outcome, ...]] = {}
        columns = []
        for version in RELEASES[engine.name]:
            key = answering(engine, version)
            if key not in known:
                goal = EngineRef(name=engine.name, version=version, runner=runner)
                known[key] = _outcomes(goal, made, target)
            columns.append((version, known[key]))
        for same, run in groupby(columns, key=lambda column: column[1]):
            versions = [version for version, _ in run]
            title = " – ".join(dict.fromkeys((versions[0], versions[-1])))
            yield Column(title=title + (f" {runner}" if runner else ""), outcomes=same)


def _outcomes(goal: Goal, made: Sequence[Specimen], target: TargetFacts) -> tuple[Outcome, ...]:
    return tuple(outcome(specimen, goal, target) for specimen in made)


_OPENING = re.compile(
    rf"^{LOCATION} cannot be written so that \S+ (computes|reads) what was trained: "
)
_KIND = re.compile(r"cannot be written as \w+$")
_LABEL = re.compile(r"\b(sglang|vllm|llamacpp|SGLang) \d[\w.]*(:v\d)?")


def _reason(message: str) -> str:
    """The reason of a refusal, without what is the same in all of them and without versions."""
    told = _KIND.sub("cannot be written so", _OPENING.sub("", message))
    return _LABEL.sub(lambda found: NAMES.get(found[1], found[1]), told)


def _section(title: str, made: Sequence[Specimen], columns: Sequence[Column]) -> str:
    """A heading, a table, what its letters stand for, and the sentences of its refusals."""
    notes: dict[str, dict[str, str]] = {CONVERTED: {}, REFUSED: {}}
    head = ["kind", "stated by", *(column.title for column in columns)]
    lines = [head, ["---"] * len(head)]
    for kind in KINDS:
        alike: dict[tuple[Outcome, ...], list[str]] = {}
        for index, specimen in enumerate(made):
            if specimen.kind == kind:
                cells = tuple(column.outcomes[index] for column in columns)
                alike.setdefault(cells, []).append(specimen.dialect)
        for cells, stated_by in alike.items():
            lines.append([kind, ", ".join(stated_by), *(_cell(cell, notes) for cell in cells)])
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    written = "\n".join(f"- {mark}: {note}" for note, mark in notes[CONVERTED].items())
    refused = "\n".join(f"{mark}. {note}" for note, mark in notes[REFUSED].items())
    said = ["What is written:", written] if written else []
    return "\n\n".join([f"## {title}", table, *said, "What is refused:", refused]) + "\n"


def _cell(cell: Outcome, notes: Mapping[str, dict[str, str]]) -> str:
    """The mark, and the letter or the number of its note."""
    if not cell.note:
        return cell.mark
    given = notes[cell.mark]
    following = len(given) + 1 if cell.mark == REFUSED else chr(ord("a") + len(given))
    return f"{cell.mark} {given.setdefault(cell.note, str(following))}"


def main() -> None:
    """Writes the page."""
    PUBLISHED.write_text(page(matrix()), encoding="utf-8")


if __name__ == "__main__":
    main()
