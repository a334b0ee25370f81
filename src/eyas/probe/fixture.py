"""Fixture: an observation with the job it answers, in one small file, to be replayed anywhere."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyas.checkpoint import (
    Checkpoint,
    Format,
    TargetFacts,
    open_checkpoint,
    open_target,
    whole_file,
    write_sparse,
)
from eyas.engines import Launch
from eyas.engines.delivered import delivered
from eyas.errors import ProbeError, reason_of
from eyas.probe.gguf_head import head_of, write_head
from eyas.probe.job import sizes_of
from eyas.probe.observed import Observed, Record

FORMAT = 1
_INTEGERS = {"I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B", "BOOL": "B"}
_BESIDE = ("model.safetensors.index.json", "hf_quant_config.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixture:
    """A drafter laid out again, its target and launch, and what the engine had done with it."""

    checkpoint: Checkpoint
    target: TargetFacts | None
    launch: Launch
    runner: str | None
    observed: Observed


def write_fixture(
    file: Path,
    checkpoint: Checkpoint,
    target: TargetFacts | None,
    launch: Mapping[str, str],
    runner: str | None,
    record: Record,
) -> None:
    """Writes headers, maps, configs, launch and `record`; no weight is in it.

    `runner` is the one that was asked for. Raises ProbeError where `file` cannot be written.
    """
    job = {
        "location": checkpoint.location.rpartition("/")[2],
        "launch": dict(launch),
        "runner": runner,
    }
    if checkpoint.format is Format.GGUF:
        job["target"] = None if target is None else sizes_of(target)
        job["gguf"] = head_of(checkpoint)
    else:
        job |= _laid_out(checkpoint, target)
    document = {"format": FORMAT, "job": job, "observed": record}
    try:
        with whole_file(file.absolute()) as path:
            path.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
    except OSError as error:
        raise ProbeError(f"{file} cannot be written: {reason_of(error)}") from None


def _laid_out(checkpoint: Checkpoint, target: TargetFacts | None) -> dict[str, Any]:
    """The files of a drafter in a directory, without weights."""
    files: dict[str, dict[str, Any]] = {}
    maps: dict[str, dict[str, list[int]]] = {}
    everything = [*delivered(checkpoint).tensors.values(), *checkpoint.tensors.values()]
    for header in everything:
        files.setdefault(header.file, {})[header.name] = [header.dtype, list(header.shape)]
        if header.dtype in _INTEGERS and len(header.shape) == 1 and header.file in checkpoint.files:
            maps.setdefault(header.file, {})[header.name] = checkpoint.read_integers(header.name)
    return {
        "config": checkpoint.config,
        "target": None if target is None else _config_of(target),
        "files": files,
        "maps": maps,
        "beside": {
            name: (checkpoint.directory / name).read_text(encoding="utf-8")
            for name in _BESIDE
            if (checkpoint.directory / name).is_file()
        },
    }


def read_fixture(file: Path, workplace: Path) -> Fixture:
    """The fixture in `file`, its drafter laid out in `workplace` with holes for weights."""
    document = json.loads(file.read_text(encoding="utf-8"))
    if document.get("format") != FORMAT:
        raise ProbeError(f"{file} is no fixture that this version of eyas reads")
    job = document["job"]
    draft = workplace / (job["location"] or "draft")
    if "gguf" in job:
        write_head(draft, job["gguf"])
    else:
        _lay_out(draft, job)
    target = None
    if job["target"] is not None:
        (workplace / "target").mkdir()
        (workplace / "target" / "config.json").write_text(json.dumps(job["target"]))
        target = open_target(workplace / "target")
    return Fixture(
        checkpoint=open_checkpoint(draft),
        target=target,
        launch=Launch(settings=tuple(job["launch"].items())),
        runner=job["runner"],
        observed=Observed.parse(document["observed"]),
    )


def _config_of(target: TargetFacts) -> Any:
    typed = Path(target.location)
    name = typed.name if typed.suffix == ".json" else "config.json"
    return json.loads((target.directory / name).read_text(encoding="utf-8"))


def _lay_out(directory: Path, job: Mapping[str, Any]) -> None:
    for index, (name, tensors) in enumerate(job["files"].items()):
        headers = {key: (dtype, tuple(shape)) for key, (dtype, shape) in tensors.items()}
        contents = {
            key: struct.pack(f"<{len(values)}{_INTEGERS[headers[key][0]]}", *values)
            for key, values in job["maps"].get(name, {}).items()
        }
        if not index:
            write_sparse(directory, job["config"], headers, contents, job["beside"])
            (directory / "model.safetensors").rename(directory / name)
        else:
            aside = directory.with_name(f"{directory.name}-{index}")
            write_sparse(aside, job["config"], headers, contents)
            (aside / "model.safetensors").rename(directory / name)
