"""Hold the contracts against the engines themselves, over damaged drafters.

    python -m benchmarks.probe_mutants vllm --count 400 --seed 1 --out FOLDER

Sound drafters of every dialect are damaged by a seed (probe_mutations.py, and for llama.cpp, which
reads GGUF files, probe_gguf_mutations.py), loaded by the installed engine through its probe, and
read by its contract. What the engine did is kept in FOLDER, so that a run that was ended goes on,
and a mended contract is compared again without the engine. Prints every disagreement and the
agreement; exits with 1 where there is a disagreement.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from benchmarks.probe_gguf import FILE, GgufMutant, sound_gguf_drafters
from benchmarks.probe_gguf_mutations import gguf_mutant
from benchmarks.probe_mutations import Mutant, mutant, reflagged, sound_drafters
from benchmarks.probe_targets import retargeted

from eyas.checkpoint import Checkpoint, open_checkpoint, open_target
from eyas.engines import EngineRef, Launch, read
from eyas.engines.catalogue import engine_named
from eyas.engines.engine import Engine
from eyas.errors import EyasError, ProbeError
from eyas.probe.answer import compared, interpreter_of
from eyas.probe.fixture import write_fixture
from eyas.probe.job import Job, job_of
from eyas.probe.observed import Record
from eyas.probe.render import Answer
from eyas.probe.run import Interpreter, Limits, ask
from eyas.spec import NotChecked

AnyMutant = Mutant | GgufMutant
_TOGETHER = 200  # drafters for each child: what is known is written down after so many


def main(arguments: list[str]) -> int:
    """Print the agreement; 1 where there is a disagreement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "engine", help="vllm, sglang, llamacpp, or one with a version: sglang@0.5.11"
    )
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flags", action="store_true", help="each value of each config key alone")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--python", type=Path)
    parser.add_argument("--fixtures", type=Path, help="write every --every'th as a fixture here")
    parser.add_argument("--every", type=int, default=20)
    options = parser.parse_args(arguments)
    name, _, version = options.engine.partition("@")
    interpreter = interpreter_of(name, version or None, options.python)
    engine = engine_named(name)
    assert engine is not None
    with tempfile.TemporaryDirectory() as folder:
        mutants = _mutants(engine, options, Path(folder) / "specimens")
        kept = (
            options.out
            / f"{options.engine}-{'flags' if options.flags else f'seed{options.seed}'}.jsonl"
        )
        options.out.mkdir(parents=True, exist_ok=True)
        records = _observed(mutants, interpreter, kept, Path(folder))
        tally: Counter[str] = Counter()
        for made, record in zip(mutants, records, strict=True):
            place = Path(folder) / "compared" / str(made.number)
            word, lines = _verdict(made, record, place, engine)
            tally[word] += 1
            for line in lines:
                print(f"{word} {made.number} ({made.runner}) {made.what}\n    {line}")
            if options.fixtures and made.number % options.every == 0 and word == "agrees":
                file = options.fixtures / f"mutant-{made.number}.json"
                _write(made, record, place, file)
    judged = tally["agrees"] + tally["DISAGREES"]
    print(f"{tally['agrees']} of {judged} agree; {dict(tally)}")
    return 1 if tally["DISAGREES"] or tally["FAILED"] else 0


def _mutants(engine: Engine, options: argparse.Namespace, workplace: Path) -> list[AnyMutant]:
    """The damaged drafters that are asked for, always the same."""
    count, seed = range(options.count), options.seed
    if engine.name == "llamacpp":
        files = sound_gguf_drafters(workplace)
        return [gguf_mutant(files, seed, i) for i in count]
    originals = sound_drafters(workplace)
    if options.flags:
        return list(reflagged(originals, engine.runners))
    made = [mutant(originals, seed, i, engine.runners) for i in count]
    return [retargeted(one, seed) for one in made] if engine.name == "sglang" else list(made)


def _observed(
    mutants: list[AnyMutant], interpreter: Interpreter, kept: Path, folder: Path
) -> list[Record]:
    """The record of each of `mutants`: from `kept` as far as they are there, else by asking."""
    known: dict[int, Record] = {}
    if kept.is_file():
        for line in kept.read_text().splitlines():
            entry = json.loads(line)
            number = entry["number"]
            if number < len(mutants) and entry["what"] == mutants[number].what:
                known[entry["number"]] = entry["record"]
    missing = [m for m in mutants if m.number not in known]
    for begin in range(0, len(missing), _TOGETHER):
        some = missing[begin : begin + _TOGETHER]
        jobs = [_job(m, interpreter.recipe.engine, folder) for m in some]
        answers = ask(interpreter, jobs, _limits(interpreter.recipe.engine))
        with kept.open("a") as out:
            for made, answer in zip(some, answers, strict=True):
                failed = {"status": "unknown", "error": {"type": "", "message": str(answer)}}
                record = failed if isinstance(answer, ProbeError) else answer
                known[made.number] = record
                entry = {"number": made.number, "what": made.what, "record": record}
                out.write(json.dumps(entry) + "\n")
        print(f"asked {begin + len(some)} of {len(missing)}", file=sys.stderr)
    return [known[m.number] for m in mutants]


def _limits(engine: str) -> Limits:
    """llama.cpp takes a moment for a small file, but for those that it never comes to an end of."""
    return Limits(memory=6 * 2**30, seconds=20 if engine == "llamacpp" else 300)


def _job(made: AnyMutant, engine: str, folder: Path) -> Job:
    directory = made.write(folder / "drafts" / f"m{made.number}")
    target = _target(made, folder / "targets" / str(made.number))
    place = folder / "jobs" / str(made.number)
    place.mkdir(parents=True)
    launch = _launch(made, engine)
    try:
        checkpoint = open_checkpoint(directory)
        job = job_of(engine, made.runner, checkpoint, open_target(target), launch, place)
    except EyasError:  # what eyas does not open the engine may
        typed = dict(launch.settings)
        return Job(draft=directory, target=target, location=".", launch=typed, runner=made.runner)
    return replace(job, location=f"m{made.number}")


def _target(made: AnyMutant, directory: Path) -> Path:
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps(made.target))
    return directory


def _launch(made: AnyMutant, engine: str) -> Launch:
    """How `made` is launched: SGLang knows two algorithms, vLLM a method by name."""
    if engine == "sglang":
        return Launch.parse(["speculative_algorithm=EAGLE"] if made.method == "eagle" else [])
    return Launch.parse([] if made.method is None else [f"method={made.method}"])


def _verdict(made: AnyMutant, record: Record, place: Path, engine: Engine) -> tuple[str, list[str]]:
    try:
        answer = _answer(made, record, place, engine)
    except ProbeError as error:
        reason = _uncovered(made, place, engine)
        return ("FAILED" if reason is None else "not covered"), [reason or str(error)]
    except EyasError as error:
        raised = record.get("stage")
        return ("agrees" if raised else "not opened"), [] if raised else [str(error)]
    if answer.contract is None:
        return "not covered", [answer.reason]
    return ("DISAGREES" if answer.disagreements else "agrees"), _lines(answer)


def _lines(answer: Answer) -> list[str]:
    return [str(one) for one in answer.disagreements[:4]]


def _answer(made: AnyMutant, record: Record, place: Path, engine: Engine) -> Answer:
    checkpoint = open_checkpoint(made.write(place / f"m{made.number}"))
    target = open_target(_target(made, place / "target"))
    return compared(record, made.runner, checkpoint, target, _launch(made, engine.name))


def _written(made: AnyMutant, place: Path) -> Checkpoint:
    """`made` where it was written to be compared."""
    directory = place / f"m{made.number}"
    return open_checkpoint(directory / FILE if isinstance(made, GgufMutant) else directory)


def _uncovered(made: AnyMutant, place: Path, engine: Engine) -> str | None:
    """Why the newest contract does not judge what the engine never ends with; None if it does."""
    ref = EngineRef(name=engine.name, version=engine.newest, runner=made.runner)
    target = open_target(place / "target")
    served = read(ref, _written(made, place), target=target, launch=_launch(made, engine.name))
    return served.reason if isinstance(served, NotChecked) else None


def _write(made: AnyMutant, record: Record, place: Path, file: Path) -> None:
    try:
        checkpoint = _written(made, place)
    except EyasError:  # the engine raises too, and there is nothing to replay
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    launch = dict(_launch(made, record["engine"]).settings)
    write_fixture(file, checkpoint, open_target(place / "target"), launch, made.runner, record)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
