"""EngineRef: an engine, a version and a runner, as typed."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.checkpoint import Checkpoint
from eyas.engines.catalogue import ENGINES, engine_named, engines_for
from eyas.engines.engine import Engine
from eyas.engines.suggestion import suggestion
from eyas.engines.version import Version
from eyas.errors import EngineError


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRef:
    """One engine version (``vllm@0.33.0:v2``); `runner` is None where none was typed."""

    name: str
    version: str
    runner: str | None = None

    @classmethod
    def parse(cls, text: str) -> EngineRef:
        """The engine that ``name@version[:runner]`` names; raises EngineError."""
        typed, separator, rest = text.strip().partition("@")
        engine = _engine(typed)
        name = engine.name
        if not separator or not rest:
            raise EngineError(
                f"{text.strip()!r} names no version of {name}",
                hint=f"write for example {name}@{engine.newest}",
            )
        version, separator, runner = rest.partition(":")
        if Version.parse(version) is None:
            raise EngineError(
                f"{version!r} in {text.strip()!r} is not a version",
                hint=f"write for example {name}@{engine.newest}",
            )
        if separator and runner not in engine.runners:
            raise EngineError(f"{name} has no runner {runner!r}", hint=_runner_hint(engine, runner))
        return cls(name=name, version=version, runner=runner if separator else None)

    @classmethod
    def parse_list(cls, text: str) -> tuple[EngineRef, ...]:
        """The engines of a comma-separated list, each once; raises EngineError."""
        parts = [part for part in text.split(",") if part.strip()]
        return tuple(dict.fromkeys(map(cls.parse, parts or [text])))

    @classmethod
    def newest_for(cls, checkpoint: Checkpoint) -> tuple[EngineRef, ...]:
        """Each engine that takes the format of `checkpoint`, in its contract's newest version."""
        return tuple(cls(name=e.name, version=e.newest) for e in engines_for(checkpoint))

    def __str__(self) -> str:
        """As it is typed; parsing it gives the same reference."""
        runner = "" if self.runner is None else f":{self.runner}"
        return f"{self.name}@{self.version}{runner}"


def _engine(name: str) -> Engine:
    engine = engine_named(name.lower())
    if engine is not None:
        return engine
    names = [known.name for known in ENGINES]
    near = suggestion(name, names)
    meant = f"did you mean {near}? " if near else ""
    examples = ", ".join(f"{known.name}@{known.newest}" for known in ENGINES)
    raise EngineError(f"eyas knows no engine {name!r}", hint=f"{meant}known: {examples}")


def _runner_hint(engine: Engine, typed: str) -> str:
    if not engine.runners:
        return f"write {engine.name}@{engine.newest}, without a runner"
    near = suggestion(typed, engine.runners)
    meant = f"did you mean {near}? " if near else ""
    return f"{meant}known: {', '.join(engine.runners)}"
