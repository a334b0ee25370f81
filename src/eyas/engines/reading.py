"""Reading a checkpoint as one engine version would."""

from __future__ import annotations

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.catalogue import ENGINES, engine_named
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
    config. Raises EngineError for an unknown engine, UsageError for an unknown launch option.
    """
    engine = engine_named(ref.name)
    version = Version.parse(ref.version)
    if engine is None or version is None:
        known = ", ".join(e.name for e in ENGINES)
        raise EngineError(f"eyas knows no engine {str(ref)!r}", hint=f"known: {known}")
    others = {other.name: other.launch_keys for other in ENGINES if other is not engine}
    settings = launch.for_engine(engine.name, engine.launch_keys, others)
    runner = ref.runner or engine.default_runner
    try:
        if not engine.covers(version):
            raise NotCovered(
                f"eyas knows {engine.name} {engine.oldest} to {engine.newest},"
                f" and {ref.version} is outside"
            )
        if checkpoint.rival is not None:
            raise NotCovered(
                f"{checkpoint.location} also holds {checkpoint.rival}, and without an index the"
                " engine would load both files over each other: remove the one that is not the"
                " drafter"
            )
        return engine.reader(ref.version, runner, checkpoint, target, settings)
    except NotCovered as end:
        return NotChecked(engine=ref.name, version=ref.version, runner=runner, reason=end.reason)
