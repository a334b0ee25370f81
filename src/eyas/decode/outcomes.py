"""Outcomes: what every prompt came to under every drafter, kept line by line while they are made.

The file is JSON Lines: first the settings that the outcomes hold for, then one outcome a line. It
appears with its first outcome, so that a run which failed before has left nothing behind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TextIO

import eyas
from eyas.checkpoint import Checkpoint
from eyas.decode.acceptance import Acceptance
from eyas.decode.generation import Generation
from eyas.errors import UsageError, reason_of

Settings = dict[str, str | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One prompt's answer. `arm` names the drafter, `fill` what its lost matrices hold, if any.

    `prompt` is a digest of the prompt's token ids: another file may have the same `id`.
    """

    arm: str
    fill: str | None
    prompt: str
    id: str
    category: str
    generation: Generation

    @property
    def key(self) -> tuple[str, str | None, str]:
        """What tells it from every other outcome."""
        return self.arm, self.fill, self.prompt


class Outcomes:
    """Every outcome so far, on disk where a file is named: a second run goes on from there."""

    def __init__(self, file: Path | None, settings: Settings) -> None:
        """Raises UsageError when `file` is none of ours, or was made under other settings."""
        self._held: dict[tuple[str, str | None, str], Outcome] = {}
        self._file = file
        self._header = {"schema_version": 1, "settings": settings}
        self._begun = False
        if file is not None:
            self._resume(file, settings)

    def get(self, arm: str, fill: str | None, prompt: str) -> Outcome | None:
        """The outcome of a prompt under a drafter, or None while there is none."""
        return self._held.get((arm, fill, prompt))

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome, on disk before this returns."""
        self._held[outcome.key] = outcome
        if self._file is None:
            return
        if self._begun:
            with self._file.open("a", encoding="utf-8") as out:
                _write(out, _to_json(outcome))
            return
        unfinished = _unfinished(self._file)
        try:
            with unfinished.open("w", encoding="utf-8") as out:
                _write(out, self._header)
                _write(out, _to_json(outcome))
            unfinished.replace(self._file)
        finally:
            unfinished.unlink(missing_ok=True)
        self._begun = True

    def _resume(self, file: Path, settings: Settings) -> None:
        content = _content(file)
        if not content:
            return
        # a line that a kill cut short is no line
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.decode("utf-8", "replace").split("\n")[:-1]
        made_with = _settings(file, lines)
        for name, value in settings.items():
            if made_with.get(name) != value:
                raise UsageError(
                    f"{file} was made with {name} {made_with.get(name)!r}, this run has {value!r}",
                    hint="name another file with --out",
                )
        for number, line in enumerate(lines[1:], 2):
            try:
                outcome = _from_json(json.loads(line))
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                raise UsageError(f"line {number} of {file} is no outcome ({error!r})") from error
            self._held[outcome.key] = outcome
        with file.open("r+b") as out:
            out.truncate(len(whole))
        self._begun = True


def settings_of(checkpoint: Checkpoint, **chosen: str | int) -> Settings:
    """What outcomes depend on: the drafter, this version of eyas, and what was chosen."""
    return {"eyas": eyas.__version__, "drafter": fingerprint(checkpoint), **chosen}


def fingerprint(checkpoint: Checkpoint) -> str:
    """A short digest of everything that a drafter is: its config, and its tensors to the byte."""
    digest = blake2b(json.dumps(checkpoint.config, sort_keys=True).encode(), digest_size=8)
    for name, header in sorted(checkpoint.tensors.items()):
        digest.update(f"{name} {header.dtype} {header.shape}".encode())
        for chunk in checkpoint.chunks(name):
            digest.update(chunk)
    return digest.hexdigest()


def prompt_digest(ids: Sequence[int]) -> str:
    """A short digest of a prompt's token ids."""
    return blake2b(repr(tuple(ids)).encode(), digest_size=8).hexdigest()


def _write(out: TextIO, record: dict[str, Any]) -> None:
    out.write(json.dumps(record, ensure_ascii=False) + "\n")


def _unfinished(file: Path) -> Path:
    """The file that becomes `file` when it is whole."""
    return file.with_name(f".{file.name}.{os.getpid()}.unfinished")


def _content(file: Path) -> bytes:
    """What `file` holds, nothing where there is none yet; UsageError if it cannot be written."""
    if file.exists() and not file.is_file():
        raise UsageError(f"{file} is no file", hint="name a file with --out")
    try:
        content = b""
        if file.exists():
            with file.open("r+b") as found:
                content = found.read()
        if not content:
            _unfinished(file).touch()
            _unfinished(file).unlink()
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {reason_of(error)}") from error
    return content


def _settings(file: Path, lines: list[str]) -> Settings:
    try:
        header: Settings = json.loads(lines[0])["settings"]
    except (IndexError, json.JSONDecodeError, KeyError, TypeError):
        raise UsageError(
            f"{file} exists and was not made by eyas eval", hint="name another file with --out"
        ) from None
    return header


def _to_json(outcome: Outcome) -> dict[str, Any]:
    record = outcome.generation.acceptance
    return {
        "arm": outcome.arm,
        "fill": outcome.fill,
        "prompt": outcome.prompt,
        "id": outcome.id,
        "category": outcome.category,
        "tokens": outcome.generation.tokens,
        "seconds": outcome.generation.seconds,
        "steps": None if record is None else record.steps,
        "rounds": None if record is None else record.rounds,
        "accepted_at": None if record is None else record.accepted_at,
    }


def _from_json(record: dict[str, Any]) -> Outcome:
    acceptance = None
    if record["rounds"] is not None:
        acceptance = Acceptance(
            steps=record["steps"],
            rounds=record["rounds"],
            accepted_at=tuple(record["accepted_at"]),
        )
    return Outcome(
        arm=record["arm"],
        fill=record["fill"],
        prompt=record["prompt"],
        id=record["id"],
        category=record["category"],
        generation=Generation(
            tokens=tuple(record["tokens"]),
            seconds=record["seconds"],
            gaps=None,
            acceptance=acceptance,
        ),
    )
