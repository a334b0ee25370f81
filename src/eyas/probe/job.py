"""Job: one drafter for an engine's probe, with the files that the probe looks at."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyas.checkpoint import Checkpoint, Format, TargetFacts, write_sparse
from eyas.engines import ENGINES, Launch
from eyas.engines.catalogue import engine_named
from eyas.engines.vllm.architecture import native_method
from eyas.errors import EngineError, UsageError

_SMALL = 2**20  # bytes: no config is larger, and a tokenizer is not looked at
_MAPS = ("I16", "I32", "I64", "BOOL", "U8", "I8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a probe is given: a drafter's files, a target's config, and how it is launched.

    `draft` is a directory, or a .gguf file; `target` a directory with a config.json, where the
    engine needs one. `location` is the drafter as the user typed it: an engine may guess from it.
    """

    draft: Path
    target: Path | None
    location: str
    launch: dict[str, str]
    runner: str | None

    def plain(self) -> dict[str, Any]:
        """The job as its JSON has it."""
        return {
            "draft": str(self.draft),
            "target": None if self.target is None else str(self.target),
            "location": self.location,
            "launch": self.launch,
            "runner": self.runner,
        }


def job_of(
    engine: str,
    runner: str | None,
    checkpoint: Checkpoint,
    target: TargetFacts | None,
    launch: Launch,
    workplace: Path,
) -> Job:
    """The job for `checkpoint`; `workplace` is a folder for what must be laid out first.

    Of a drafter on the Hub the headers are laid out with holes for weights: a probe looks at no
    number but those of id maps. Raises EngineError, UsageError for a launch option that the engine
    does not take, CheckpointError where a map cannot be read.
    """
    known = engine_named(engine)
    if known is None:
        raise EngineError(f"eyas knows no engine {engine!r}")
    if known.name != "llamacpp" and target is None:
        raise UsageError(
            f"{known.name} builds a drafter beside its target", hint="add --target TARGET"
        )
    others = {other.name: other.launch_keys for other in ENGINES if other is not known}
    settings = launch.for_engine(known.name, known.launch_keys, others)
    launched = dict(settings)
    if known.name == "vllm":  # eyas launches a drafter by the method of its kind
        launched.setdefault("method", native_method(checkpoint.config))
    return Job(
        draft=_files(checkpoint, workplace),
        target=None if target is None else _target(known.name, target, workplace),
        location=checkpoint.location,
        launch=launched,
        runner=runner or known.default_runner,
    )


def _files(checkpoint: Checkpoint, workplace: Path) -> Path:
    if checkpoint.format is Format.GGUF:
        return (checkpoint.directory / checkpoint.config_file).absolute()
    if not checkpoint.remote:
        return checkpoint.directory.absolute()
    headers = {name: (t.dtype, t.shape) for name, t in checkpoint.tensors.items()}
    maps = [n for n, (dtype, shape) in headers.items() if dtype in _MAPS and len(shape) == 1]
    contents = {name: checkpoint.read_bytes(name) for name in maps}
    return write_sparse(workplace / "draft", checkpoint.config, headers, contents)


def _target(engine: str, target: TargetFacts, workplace: Path) -> Path:
    """A directory for the probe of `engine`; llama.cpp's stands in for a target by its sizes."""
    if engine != "llamacpp":
        return _config_of(target, workplace)
    directory = workplace / "target"
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(sizes_of(target)), encoding="utf-8")
    return directory


def sizes_of(target: TargetFacts) -> dict[str, Any]:
    """What llama.cpp's drafter meets of `target`, by the names of a config.json."""
    return {
        "architectures": list(target.architectures),
        "model_type": target.model_type,
        "hidden_size": target.hidden_size,
        "num_hidden_layers": target.num_layers,
        "vocab_size": target.vocab_size,
        "tie_word_embeddings": target.tie_word_embeddings,
    }


def _config_of(target: TargetFacts, workplace: Path) -> Path:
    """A directory with the target's config and what belongs to it: no weight can be read."""
    directory = workplace / "target"
    directory.mkdir()
    typed = Path(target.location)
    own = typed.name if typed.suffix == ".json" else "config.json"
    for path in target.directory.iterdir():
        if path.suffix in (".json", ".py") and path.is_file() and path.stat().st_size < _SMALL:
            shutil.copyfile(path, directory / path.name)
    shutil.copyfile(target.directory / own, directory / "config.json")
    return directory
