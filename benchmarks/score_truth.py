"""Score eyas.engines against recorded loads of the real engines.

    python benchmarks/score_truth.py SHARED/cases/truth [--all]

Each checkpoint is copied under a random name, its tensors in random order, and read with
`engines.read`; the landing is compared with the record: which tensor is in which parameter, what
is lost, cut, padded or never filled, whose embedding and head are used, and whether and where the
engine raises. Prints the score for each group and engine and every disagreement; exits with 1
when there is one.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import secrets
import struct
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from eyas.checkpoint import Checkpoint, TargetFacts, open_checkpoint, open_target
from eyas.engines import EngineRef, Launch, read
from eyas.errors import EyasError
from eyas.spec import (
    Fate,
    Landing,
    NotChecked,
    Padding,
    ParameterLanding,
    Served,
    Stage,
    Unfilled,
)

FLOOR_GROUPS = re.compile(r"(good_(spec|mid|layers0|modelprefix|prefused|sharded)|bad_(no|name))_")
FLOOR_ENGINES = (
    "sglang@0.5.8",
    "sglang@0.5.11",
    "sglang@0.5.12",
    "sglang@0.5.23",
    "vllm@0.32.0:v1",
)
ALL_ENGINES = (
    *FLOOR_ENGINES,
    "sglang@0.4.9",
    "sglang@0.5.4.post3",
    "sglang@0.5.16",
    "sglang@0.5.18",
    "sglang@0.5.22",
)
_STAGES = {Stage.CONFIG: "config", Stage.CONSTRUCT: "construct", Stage.LOAD: "load"}

Record = Mapping[str, Any]


@dataclass(slots=True)
class Score:
    """Counts for one group of variants and one engine."""

    scored: int = 0
    met: int = 0
    skipped: int = 0


@dataclass(slots=True)
class Result:
    """The score by group and engine, and what did not agree."""

    scores: dict[tuple[str, str], Score] = field(default_factory=lambda: defaultdict(Score))
    disagreements: list[str] = field(default_factory=list)
    skips: list[str] = field(default_factory=list)

    @property
    def scored(self) -> int:
        """All records that were compared."""
        return sum(score.scored for score in self.scores.values())

    @property
    def met(self) -> int:
        """Those without a disagreement."""
        return sum(score.met for score in self.scores.values())


def score(truth: Path, *, everything: bool, seed: int | None = None) -> Result:
    """Read every selected variant as every engine and compare it with its record.

    `truth` is the folder of truth.json. With `everything`, all variants and engines are scored,
    and a record that eyas does not read is a skip; otherwise it is a disagreement. A checkpoint
    that eyas cannot open is met where the engine raises too.
    """
    records: Mapping[tuple[str, str], Record] = {
        (r["variant"], f"{r['engine']}@{r['version']}"): r
        for r in json.loads((truth / "truth.json").read_text())
    }
    variants = json.loads((truth / "variants.json").read_text())
    shuffle = random.Random(seed)
    result = Result()
    for variant in variants:
        name = variant["variant"]
        if not everything and not FLOOR_GROUPS.match(name):
            continue
        with tempfile.TemporaryDirectory(prefix=secrets.token_hex(4)) as folder:
            target = _copied_target(truth / "targets" / variant["target"], Path(folder))
            unopened = ""
            try:
                checkpoint = open_checkpoint(_copied(truth / "variants" / name, folder, shuffle))
            except EyasError as error:
                checkpoint, unopened = None, str(error)
            for engine in ALL_ENGINES if everything else FLOOR_ENGINES:
                record = records.get((name, engine.partition(":")[0]))
                if record is None or "environment" in record:
                    continue
                tally = result.scores[_group(name), engine]
                if checkpoint is None:
                    if record["stage"] is None:
                        line = f"{name} {engine}: not opened: {unopened}"
                        _skip(result, tally, line, everything=everything)
                    else:  # what eyas does not open the engine does not either
                        tally.scored += 1
                        tally.met += 1
                    continue
                launch = _launch(variant["launch"], record)
                served = read(EngineRef.parse(engine), checkpoint, target=target, launch=launch)
                if isinstance(served, NotChecked):
                    line = f"{name} {engine}: not checked: {served.reason}"
                    _skip(result, tally, line, everything=everything)
                    continue
                faults = list(disagreements(record, served, checkpoint))
                tally.scored += 1
                tally.met += not faults
                result.disagreements += [f"{name} {engine}: {fault}" for fault in faults]
    return result


def _skip(result: Result, tally: Score, line: str, *, everything: bool) -> None:
    tally.skipped += 1
    result.skips.append(line)
    if not everything:
        result.disagreements.append(line)


def _group(name: str) -> str:
    return "_".join(name.split("_")[:2]) + "_*"


def _copied_target(source: Path, folder: Path) -> TargetFacts:
    directory = folder / secrets.token_hex(6)
    directory.mkdir()
    (directory / "config.json").write_bytes((source / "config.json").read_bytes())
    return open_target(directory)


def _copied(source: Path, folder: str, shuffle: random.Random) -> Path:
    """A copy of checkpoint `source` under a random name, its tensors in random order."""
    directory = Path(folder) / secrets.token_hex(6)
    directory.mkdir()
    for path in sorted(source.iterdir()):
        raw = path.read_bytes()
        if path.suffix == ".safetensors":
            raw = _shuffled(raw, shuffle)
        (directory / path.name).write_bytes(raw)
    return directory


def _shuffled(raw: bytes, shuffle: random.Random) -> bytes:
    """The same safetensors file with its tensors in another order."""
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    data = raw[8 + length :]
    names = [name for name in header if name != "__metadata__"]
    shuffle.shuffle(names)
    ordered = {"__metadata__": header["__metadata__"]} if "__metadata__" in header else {}
    pieces, position = [], 0
    for name in names:
        start, stop = header[name]["data_offsets"]
        pieces.append(data[start:stop])
        ordered[name] = {**header[name], "data_offsets": [position, position + stop - start]}
        position += stop - start
    text = json.dumps(ordered).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(pieces)


def _launch(launch: Mapping[str, Any], record: Record) -> Launch:
    options = []
    if record["engine"] == "sglang":
        options = [f"{k}={v}" for k, v in launch.items() if k != "engine"]
    elif record.get("method"):
        options = [f"method={record['method']}"]
    return Launch.parse(options)


def disagreements(record: Record, served: Served, checkpoint: Checkpoint) -> Iterator[str]:
    """Everything in which `served` differs from what the engine did."""
    stage = None if served.refusal is None else _STAGES.get(served.refusal.stage)
    if stage != record["stage"]:
        message = served.refusal.message if served.refusal else record["error"] or ""
        yield f"raises at {record['stage']}, read as {stage} ({message[:120]})"
        return
    landing = served.landing
    if stage is not None or landing is None:
        return
    yield from landing.imbalance()
    for what, true, told in _pairs(record, landing, checkpoint):
        if true != told:
            yield f"{what}: {_difference(true, told)}"
    failure = (record.get("first_request") or {}).get("request") or "ok"
    # An IndexError is the numbers of the map, which no loader looks at and check does.
    sizes_fail = failure.startswith("RuntimeError")
    if "first_request" in record and sizes_fail != (served.refusal is not None):
        yield f"first request: {failure}, read as {served.refusal}"


def _pairs(
    record: Record, landing: Landing, checkpoint: Checkpoint
) -> Iterator[tuple[str, object, object]]:
    """What is compared: a name, the truth, and what eyas says."""
    unread = set(record.get("never_delivered", ())) - set(checkpoint.tensors)
    gone = (Fate.LOST, Fate.IGNORED)
    dropped = {t.name for t in landing.tensors if t.fate in gone and not _is_foreign(t.name)}
    # Equal maps of two files are one map to the recorder, which tells tensors by value.
    dropped -= {t.name.partition(" :: ")[2] for t in landing.tensors if _is_map(t.name)} - {"t2d"}
    yield "in no parameter", set(record["dropped"]) - unread, dropped
    filled = {p.name: sorted(_sources(p)) for p in landing.parameters if p.tensors}
    consumed = [t.name.rpartition(" :: ")[2] for t in landing.tensors if t.fate is Fate.CONSUMED]
    if consumed:
        filled["<attr> hot_token_id"] = consumed
    yield "filled from", {k: sorted(v) for k, v in record["filled_from"].items()}, filled
    unwritten = {p.name: _initialisation(p) for p in landing.parameters if not p.tensors}
    inits = {k: v.removesuffix(" init") for k, v in record["unwritten_init"].items()}
    yield "unwritten", set(record["unwritten"]), set(unwritten)
    yield "initialisation", inits, unwritten
    yield "partly written", record["partial"], dict(_partial(landing))
    zeros = {p.name: _zeros(p) for p in landing.parameters if _zeros(p)}
    yield "zeros", record["foreign"], zeros
    short = {
        t.name: f"{t.elements - t.cut}/{t.elements}"
        for t in landing.tensors
        if t.fate is Fate.LANDED and t.cut
    }
    yield "cut", record["landed_short"], short
    shared = record["after_sharing"]
    yield "after sharing", shared["embed_and_head"], dict(_shared(landing, record))
    still = {p.name for p in landing.parameters if not p.tensors and p.replaced is None}
    yield "still unwritten", set(shared["still_unwritten"]), still


def _sources(parameter: ParameterLanding) -> set[str]:
    """The tensors in `parameter`, one of another file in the record's word for it."""
    names = (n.rpartition(" :: ")[2] if _is_map(n) else n for n in parameter.tensors)
    return {"<stale second file>" if _is_foreign(name) else name for name in names}


def _is_foreign(name: str) -> bool:
    return " :: " in name


def _is_map(name: str) -> bool:
    return _is_foreign(name) and name.rpartition(" :: ")[2] in ("d2t", "t2d")


def _initialisation(parameter: ParameterLanding) -> str:
    source = parameter.segments[0].source
    return str(source.initialisation) if isinstance(source, Unfilled) else "?"


def _partial(landing: Landing) -> Iterator[tuple[str, str]]:
    for parameter in landing.parameters:
        row = prod(parameter.shape[1:])
        unfilled = sum(
            (s.stop - s.start) * row for s in parameter.segments if isinstance(s.source, Unfilled)
        )
        if parameter.tensors and unfilled:
            yield parameter.name, f"{parameter.elements - unfilled}/{parameter.elements}"


def _zeros(parameter: ParameterLanding) -> int:
    row = prod(parameter.shape[1:])
    padding = sum(
        (s.stop - s.start) * row for s in parameter.segments if isinstance(s.source, Padding)
    )
    return padding + sum(s.zeros for s in parameter.segments)


def _shared(landing: Landing, record: Record) -> Iterator[tuple[str, list[str]]]:
    """What the embedding and the head are in the end, in the record's words."""
    parameters = {p.name: p for p in landing.parameters}
    embedding = "model.embed_tokens.weight"
    for name in (embedding, "lm_head.weight"):
        parameter = parameters.get(name) or parameters[embedding]  # a tied head is the embedding
        if parameter.replaced is not None:
            what = parameter.replaced.what.removesuffix(".weight")
            yield name, [f"<target {what}>"]
        elif parameter.tensors:
            yield name, sorted(_sources(parameter))
        else:
            yield name, ["<unwritten>"]


def _difference(true: object, told: object) -> str:
    if isinstance(true, set) and isinstance(told, set):
        return f"only in the record {sorted(true - told)}, only in eyas {sorted(told - true)}"
    if isinstance(true, dict) and isinstance(told, dict):
        keys = sorted(k for k in {*true, *told} if true.get(k) != told.get(k))
        return "; ".join(f"{k} is {true.get(k)}, read as {told.get(k)}" for k in keys)
    return f"{true}, read as {told}"


def report(result: Result) -> str:
    """The table of scores, then every disagreement."""
    lines = [f"{'group':24} {'engine':16} {'scored':>6} {'met':>6} {'skipped':>8}"]
    for (group, engine), tally in sorted(result.scores.items()):
        lines.append(
            f"{group:24} {engine:16} {tally.scored:6} {tally.met:6} {tally.skipped or '':>8}"
        )
    engines = sorted({engine for _, engine in result.scores})
    lines.append("")
    for engine in engines:
        mine = [tally for (_, e), tally in result.scores.items() if e == engine]
        scored, met = sum(t.scored for t in mine), sum(t.met for t in mine)
        lines.append(f"{'all':24} {engine:16} {scored:6} {met:6} {sum(t.skipped for t in mine):8}")
    lines.append(f"\n{result.met} of {result.scored} records met, {len(result.skips)} skips")
    lines += [f"SKIP {line}" for line in result.skips]
    lines += [f"DISAGREES {line}" for line in result.disagreements]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print the score; 1 when a record is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("truth", type=Path, help="the folder of truth.json")
    parser.add_argument("--all", action="store_true", help="every record, not only the floor")
    options = parser.parse_args(arguments)
    if not (options.truth / "truth.json").is_file():
        print(f"{options.truth} holds no truth.json", file=sys.stderr)
        return 2
    result = score(options.truth, everything=options.all)
    print(report(result))
    return 1 if result.disagreements else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
