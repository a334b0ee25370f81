"""Observed: what an engine really did with a drafter, as its probe wrote it down."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eyas.errors import ProbeError

_STAGES = ("config", "construct", "load", "joining the target", "first request")
_LEFT = ("memory", "zeros", "ones", "random")
_FATES = ("landed", "short", "consumed", "ignored", "lost")
Record = dict[str, Any]  # one JSON object of a probe
UNKNOWN = "unknown"  # the probe's own failure, never the engine's


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSegment:
    """Rows `start` to `stop` of a parameter, and what was found there.

    `tensor` is named behind its file (``model.safetensors :: fc.weight``). `offset` is its row in
    row `start`, None where its type cannot tell rows apart. `zeros` and `untouched` count
    elements, the same in each row; `left` is what construction had left where nothing was
    written. `also` names further tensors in the same rows.
    """

    start: int
    stop: int
    tensor: str | None
    offset: int | None
    zeros: int
    left: str | None
    untouched: int = 0
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedParameter:
    """A parameter of the engine's model: its shape, and its segments in row order."""

    name: str
    shape: tuple[int, ...]
    segments: tuple[ObservedSegment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTensor:
    """A tensor of the checkpoint: where it was found again, and how many elements were not."""

    name: str
    fate: str
    parameters: tuple[str, ...]
    cut: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """What the engine raised, and where."""

    stage: str
    kind: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What one version of an engine did with one drafter under one launch.

    `facts` are what the engine itself derived, by its own names; `overwritten` names what of the
    target takes a parameter's place after loading. `joined` says whether a drafter that loads was
    put beside a target: where it was not, nothing is known of what comes after loading.
    """

    engine: str
    version: str
    runner: str | None
    raised: Raised | None
    architecture: str | None
    facts: Mapping[str, Any]
    parameters: tuple[ObservedParameter, ...]
    tensors: tuple[ObservedTensor, ...]
    overwritten: Mapping[str, str]
    log: tuple[str, ...]
    joined: bool = True

    @classmethod
    def parse(cls, record: object) -> Observed:
        """The observation that a probe's JSON object spells; raises ProbeError.

        It is also raised, with the probe's own words, for a record in which the probe failed.
        """
        fields = _table(record, "the record")
        if fields.get("status") == UNKNOWN:
            error = _table(fields.get("error"), "error")
            raise _failed(f"{fields.get('engine')} {fields.get('version')}", error)
        return cls(
            engine=_text(fields, "engine"),
            version=_text(fields, "version"),
            runner=_text_or_none(fields, "runner"),
            raised=_raised(fields),
            architecture=_text_or_none(fields, "architecture"),
            facts=_table(fields.get("facts"), "facts"),
            parameters=tuple(
                _parameter(name, value)
                for name, value in _table(fields.get("parameters"), "parameters").items()
            ),
            tensors=tuple(
                _tensor(name, value)
                for name, value in _table(fields.get("tensors"), "tensors").items()
            ),
            overwritten={
                str(k): str(v) for k, v in _table(fields.get("overwritten"), "overwritten").items()
            },
            log=_texts(fields.get("log"), "log"),
            joined=fields.get("joined", True) is True,
        )

    def within(self, files: Sequence[str]) -> Observed:
        """The same, the tensors of `files` named without their file."""
        return replace(
            self,
            tensors=tuple(replace(t, name=_bare(t.name, files)) for t in self.tensors),
            parameters=tuple(
                replace(
                    parameter,
                    segments=tuple(
                        replace(
                            segment,
                            tensor=None if segment.tensor is None else _bare(segment.tensor, files),
                            also=tuple(_bare(name, files) for name in segment.also),
                        )
                        for segment in parameter.segments
                    ),
                )
                for parameter in self.parameters
            ),
        )


def _failed(engine: str, error: Mapping[str, Any]) -> ProbeError:
    kind, said = error.get("type"), error.get("message")
    if kind == "MemoryError" or "can't allocate memory" in str(said):
        return ProbeError(
            f"{engine} makes more of this config than fits the memory that the probe may take",
            hint="check the sizes in the config, or give it more with --memory",
        )
    if kind == "Uncodable":
        return ProbeError(
            f"the probe of {engine} cannot trace this drafter: {said}",
            hint="eyas check answers from its contract",
        )
    return ProbeError(
        f"the probe of {engine} failed itself: {kind}: {said}",
        hint="report it; eyas check answers from its contract alone",
    )


def _bare(name: str, files: Sequence[str]) -> str:
    file, separator, bare = name.partition(" :: ")
    return bare if separator and file in files else name


def read_records(file: Path) -> list[Record]:
    """The JSON objects, one a line, of what a probe wrote; a last line cut short is left out."""
    if not file.is_file():
        return []
    lines = file.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1] if line]  # what a kill cut has no newline


def _raised(fields: Mapping[str, Any]) -> Raised | None:
    status = fields.get("status")
    if status == "ok":
        return None
    stage = fields.get("stage")
    if status != "raises" or stage not in _STAGES:
        raise _malformed(f"status {status!r} at stage {stage!r}")
    error = _table(fields.get("error"), "error")
    return Raised(stage=stage, kind=_text(error, "type"), message=_text(error, "message"))


def _parameter(name: str, value: object) -> ObservedParameter:
    fields = _table(value, name)
    segments = fields.get("segments")
    if not isinstance(segments, list):
        raise _malformed(f"the segments of {name}")
    return ObservedParameter(
        name=name,
        shape=_whole_numbers(fields.get("shape"), name),
        segments=tuple(_segment(name, segment) for segment in segments),
    )


def _segment(name: str, value: object) -> ObservedSegment:
    fields = _table(value, f"a segment of {name}")
    left = fields.get("left")
    if left is not None and left not in _LEFT:
        raise _malformed(f"what is left in {name}: {left!r}")
    offset = fields.get("offset")
    return ObservedSegment(
        start=_whole(fields.get("start"), name),
        stop=_whole(fields.get("stop"), name),
        tensor=_text_or_none(fields, "tensor"),
        offset=None if offset is None else _whole(offset, name),
        zeros=_whole(fields.get("zeros"), name),
        left=left,
        untouched=_whole(fields.get("untouched", 0), name),
        also=_texts(fields.get("also", []), name),
    )


def _tensor(name: str, value: object) -> ObservedTensor:
    fields = _table(value, name)
    fate = fields.get("fate")
    if fate not in _FATES:
        raise _malformed(f"the fate of {name}: {fate!r}")
    return ObservedTensor(
        name=name,
        fate=fate,
        parameters=_texts(fields.get("parameters"), name),
        cut=_whole(fields.get("cut", 0), name),
    )


def _table(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _malformed(what)
    return value


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise _malformed(key)
    return value


def _text_or_none(fields: Mapping[str, Any], key: str) -> str | None:
    return None if fields.get(key) is None else _text(fields, key)


def _texts(value: object, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _malformed(what)
    return tuple(value)


def _whole(value: object, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _malformed(what)
    return value


def _whole_numbers(value: object, what: str) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise _malformed(what)
    return tuple(_whole(item, what) for item in value)


def _malformed(what: str) -> ProbeError:
    return ProbeError(
        f"what the probe wrote is not in its form: {what[:200]}",
        hint="report it; eyas check answers from its contract alone",
    )
