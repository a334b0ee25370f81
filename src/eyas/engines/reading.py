"""Reading a checkpoint as one engine version would."""

from __future__ import annotations

from dataclasses import replace

from eyas.checkpoint import Checkpoint, Format, TargetFacts
from eyas.engines.catalogue import ENGINES, engine_named
from eyas.engines.delivered import delivered, told_apart
from eyas.engines.engine import Engine
from eyas.engines.launch import Launch
from eyas.engines.reference import EngineRef
from eyas.engines.stop import NotCovered
from eyas.engines.version import Version
from eyas.errors import EngineError
from eyas.spec import NotChecked, Served


def read(
    ref: EngineRef, checkpoint: Checkpoint, *, target: TargetFacts | None, launch: Launch
) -> Served | NotChecked:
    """What engine `ref` makes of `checkpoint` under `launch`.

    Without `target`, facts that depend on it (its depth, its width) are taken from the drafter's
    config. Raises EngineError for an unknown engine, UsageError for an unknown launch option,
    CheckpointError where another weight file beside the drafter's is read and is not sound.
    """
    engine, version = _known(ref)
    others = {other.name: other.launch_keys for other in ENGINES if other is not engine}
    settings = launch.for_engine(engine.name, engine.launch_keys, others)
    runner = ref.runner or engine.default_runner
    try:
        if not engine.covers(version):
            raise NotCovered(_outside(engine, ref))
        if checkpoint.format is Format.GGUF and not engine.reads_gguf:
            raise NotCovered(
                f"{checkpoint.location} is a {checkpoint.format} file, and eyas's contract for"
                f" {engine.name} is about safetensors"
            )
        everything = delivered(checkpoint)
        served = engine.reader(ref.version, runner, everything, target, settings)
    except NotCovered as end:
        return NotChecked(engine=ref.name, version=ref.version, runner=runner, reason=end.reason)
    if everything is checkpoint or served.landing is None:
        return served
    return replace(served, landing=told_apart(served.landing, checkpoint, everything))


def require_covered(ref: EngineRef) -> None:
    """Raises EngineError for an engine that is not known, or a version outside its contract."""
    engine, version = _known(ref)
    if not engine.covers(version):
        raise EngineError(
            _outside(engine, ref), hint=f"write for example {engine.name}@{engine.newest}"
        )


def _known(ref: EngineRef) -> tuple[Engine, Version]:
    engine = engine_named(ref.name)
    version = Version.parse(ref.version)
    if engine is None or version is None:
        known = ", ".join(e.name for e in ENGINES)
        raise EngineError(f"eyas knows no engine {str(ref)!r}", hint=f"known: {known}")
    return engine, version


def _outside(engine: Engine, ref: EngineRef) -> str:
    return (
        f"eyas knows {engine.name} {engine.oldest} to {engine.newest}, and {ref.version} is outside"
    )
