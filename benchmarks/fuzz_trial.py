"""One trial: a mutant, made from its seed, through everything that `eyas check` does."""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from benchmarks import fuzz_gguf, fuzz_pickled
from benchmarks.fuzz_files import CONFIG, Folder, RawFile, damage_bytes, files_of
from benchmarks.fuzz_mutations import (
    Mutant,
    copy_of,
    mutate_config,
    mutate_target,
    mutate_tensors,
)
from benchmarks.fuzz_specimens import Specimen, specimens

from eyas import checks as checking
from eyas import dialects, engines
from eyas.checkpoint import Checkpoint, TargetFacts, open_checkpoint, open_target
from eyas.checks.render import Format, facts, render
from eyas.checks.render import landing as landing_table
from eyas.checks.render.style import PLAIN
from eyas.convert import repair_of
from eyas.engines import ENGINES, EngineRef, Launch, Version
from eyas.errors import CheckpointError, EyasError, NotADrafterError, TargetError
from eyas.spec import NotChecked, Served

STAGES = ("opened", "recognised", "read", "checked", "judged")
EXPECTED = (CheckpointError, NotADrafterError, TargetError)
_KNOWN = (
    "sglang@0.4.9",
    "sglang@0.5.4.post3",
    "sglang@0.5.8",
    "sglang@0.5.10.post1",
    "sglang@0.5.11",
    "sglang@0.5.12",
    "sglang@0.5.13",
    "sglang@0.5.16",
    "sglang@0.5.17",
    "sglang@0.5.18",
    "sglang@0.5.22",
    "sglang@0.5.23",
    "vllm@0.32.0:v1",
    "vllm@0.32.0:v2",
    "vllm@0.33.0:v1",
    "vllm@0.33.0:v2",
    "llamacpp@11549",
)
_ENGINES_EACH = 2  # for most mutants
_THOROUGH = 1 / 24  # of them are read by every version and shown in every form
_CONVERTED = 1 / 100  # of them are planned to be converted, where a finding could advise it
_LONGEST = 1500  # characters of a message that is still a sentence


class Complaint(Exception):  # noqa: N818 - the trial's own verdict on what eyas did
    """Something that eyas must not do, short of an uncaught exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How far a mutant came, and what went wrong (None: nothing).

    `stage` counts STAGES that were reached; `trace` is the traceback of a failure.
    """

    stage: int
    failure: str | None = None
    trace: str = ""
    recipe: tuple[str, ...] = ()


def versions() -> tuple[EngineRef, ...]:
    """Every engine version that has a contract here, with each runner."""
    refs = [EngineRef.parse(text) for text in _KNOWN]
    ranges = {engine.name: engine for engine in ENGINES}
    return tuple(ref for ref in refs if ranges[ref.name].covers(_version(ref)))


def _version(ref: EngineRef) -> Version:
    version = Version.parse(ref.version)
    if version is None:
        raise ValueError(f"{ref} has no version")
    return version


class Laboratory:
    """Makes the mutant of a seed and tries it, in a directory that is used again and again."""

    def __init__(self, workplace: Path) -> None:
        found = specimens(workplace / "specimens")
        # Twice, for a file of its own kind is otherwise a rare one.
        others = [fuzz_gguf.specimen(found[0].target), fuzz_pickled.specimen(found[0])]
        self._specimens: Sequence[Specimen] = (*found, *2 * others)
        self._draft = Folder(workplace / "draft")
        self._target = Folder(workplace / "target")
        self._versions = versions()
        self.recipe: list[str] = []
        self.refusal = ""

    def attempt(self, seed: int) -> Outcome:
        """The outcome of the mutant of `seed`.

        `recipe` then says what was done to it, `refusal` how eyas refused it.
        """
        dice = Random(seed)
        specimen = dice.choice(self._specimens)
        mutant = copy_of(specimen)
        self.recipe, self.refusal = mutant.recipe, ""
        files = _mutate(mutant, dice, specimen.file)
        self._draft.fill(files)
        self._target.fill({CONFIG: RawFile.of(json.dumps(mutant.target).encode())})
        progress = [0]
        try:
            self._try(self._draft.path / (specimen.file or ""), dice, progress)
        except EXPECTED as error:
            self.refusal = str(error)
            flaw = _flaw(error)
            if flaw is None:
                return Outcome(stage=progress[0])
            return Outcome(stage=progress[0], failure=flaw, recipe=tuple(mutant.recipe))
        except Exception as error:  # noqa: BLE001 - what escapes eyas is what is looked for
            return Outcome(
                stage=progress[0],
                failure=_signature(error),
                trace=traceback.format_exc(),
                recipe=tuple(mutant.recipe),
            )
        return Outcome(stage=progress[0])

    def _try(self, draft: Path, dice: Random, progress: list[int]) -> None:
        checkpoint = open_checkpoint(draft)
        progress[0] = 1
        dialects.recognise(checkpoint)
        progress[0] = 2
        trained = checking.as_trained(checkpoint, target=None)
        progress[0] = 3
        target: TargetFacts | None = None
        if dice.random() < 0.7:
            target = open_target(self._target.path)
            trained = replace(trained, target=target)
            checking.require_fit(trained)
        launch = _launch(dice)
        thorough = dice.random() < _THOROUGH
        if thorough and dice.random() < 0.5 and _is_small(checkpoint):
            trained = checking.as_trained(checkpoint, target=target, values=True)
        refs = self._engines(checkpoint, dice, thorough=thorough)
        served = [engines.read(ref, checkpoint, target=target, launch=launch) for ref in refs]
        if not thorough and dice.random() < _CONVERTED:
            trained = replace(trained, repair=repair_of(checkpoint, target))
        report = checking.report_on(trained, served)
        progress[0] = 5 if report.judged else 4
        _require_lines(report)
        if json.loads(render(report, Format.JSON))["schema_version"] != report.schema_version:
            raise Complaint("the JSON is not the report's")
        if thorough:
            _look(checkpoint, trained, served, report)

    def _engines(
        self, checkpoint: Checkpoint, dice: Random, *, thorough: bool
    ) -> Sequence[EngineRef]:
        """Two versions of engines that take the format, and now and then any other; or all."""
        if thorough:
            return self._versions
        names = {engine.name for engine in engines.engines_for(checkpoint)}
        fitting = [ref for ref in self._versions if ref.name in names]
        chosen = dice.sample(fitting, min(_ENGINES_EACH, len(fitting)))
        return chosen if dice.random() < 0.95 else [*chosen, dice.choice(self._versions)]


def _is_small(checkpoint: Checkpoint) -> bool:
    return sum(header.nbytes for header in checkpoint.tensors.values()) < 1 << 20


def _mutate(mutant: Mutant, dice: Random, file: str | None) -> dict[str, RawFile]:
    damaged = dice.random() < 0.35
    for _ in range(dice.choice((0, 1, 2) if damaged else (1, 1, 2, 3, 5))):
        roll = dice.random()
        if roll < 0.5:
            mutate_config(mutant, dice)
        elif roll < 0.9:
            mutate_tensors(mutant, dice)
        else:
            mutate_target(mutant, dice)
    if file is None:
        return files_of(mutant, dice, damaged=damaged)
    lies = damaged and dice.random() < 0.7
    if file == fuzz_pickled.FILE:
        files = {file: fuzz_pickled.encode(mutant, dice, damaged=lies)}
        files[CONFIG] = RawFile.of(json.dumps(mutant.config).encode())
    else:
        files = {file: fuzz_gguf.encode(mutant, dice, damaged=lies)}
    if damaged:
        damage_bytes(files, dice)
    return files


def _launch(dice: Random) -> Launch:
    texts = []
    for engine in ENGINES:
        for key in engine.launch_keys:
            if dice.random() < 0.2:
                values = key.values or ("0", "1", "4096", "9" * 30)
                texts.append(f"{engine.name}.{key.name}={dice.choice(values)}")
    return Launch.parse(texts)


def _require_lines(report: checking.Report) -> None:
    """Everything that a report says stands in one line, and steers no terminal."""
    said = [(engine.label, engine.reason) for engine in report.engines]
    said += [(skip.check, skip.reason) for skip in report.skipped]
    for found in report.findings:
        texts = (found.place, found.message, found.expected, found.found, found.effect, found.help)
        said += [(found.code, text) for text in texts]
    for where, text in said:
        if text is not None and not text.isprintable():
            raise Complaint(f"{where} says {text[-60:]!r}")


def _look(
    checkpoint: Checkpoint,
    trained: checking.Trained,
    served: Sequence[Served | NotChecked],
    report: checking.Report,
) -> None:
    """Renders everything else that a reader can ask for."""
    why = next(r for d in dialects.DIALECTS if (r := d.recognise(checkpoint)) is not None)
    unread = dialects.unread_keys(checkpoint)
    texts = [render(report, form) for form in Format]
    texts.append(facts.render_human(trained, why, PLAIN, unread=unread))
    texts.append(facts.render_json(trained, why, unread=unread))
    for reading in served[:: len(served) // 2]:
        if isinstance(reading, Served):
            texts.append(landing_table.render_human(reading, checkpoint.location, PLAIN))
            texts.append(landing_table.render_json(reading, checkpoint.location))
    for text in texts:
        if not text.replace("\n", "").isprintable():
            wild = next(c for c in text if not c.isprintable() and c != "\n")
            raise Complaint(f"{wild!r} is written to the terminal")


def _flaw(error: EyasError) -> str | None:
    """What is wrong with how `error` speaks; None where it is a sentence with what to do."""
    kind = type(error).__name__
    if not error.message.isprintable():
        return f"{kind} with characters that do not print: {error.message[:80]!r}"
    if len(error.message) > _LONGEST:
        return f"{kind} of {len(error.message)} characters: {error.message[:80]!r}"
    if not error.hint:
        return f"{kind} without a hint: {error.message[:80]!r}"
    return None


def _signature(error: Exception) -> str:
    """The kind of `error` and the place in eyas where it came up, the same for all of its kind."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [f for f in frames if "/eyas/" in f.filename.replace("\\", "/")]
    last = inside[-1] if inside else frames[-1]
    place = "/".join(Path(last.filename).parts[-3:])
    return f"{type(error).__name__} at {place}:{last.lineno} in {last.name}: {str(error)[:100]!r}"
