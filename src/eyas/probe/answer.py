"""Asking one engine about one drafter, and comparing what it did with the contract."""

from __future__ import annotations

import tempfile
from pathlib import Path

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines import EngineRef, Launch, Version, read
from eyas.engines.catalogue import engine_named
from eyas.engines.version import version_of
from eyas.errors import EngineError, ProbeError
from eyas.probe.compare import disagreements
from eyas.probe.environment import environment_of, recipe_of
from eyas.probe.job import job_of
from eyas.probe.observed import Observed, Record
from eyas.probe.render import Answer
from eyas.probe.run import Interpreter, Limits, ask
from eyas.spec import NotChecked


def interpreter_of(engine: str, version: str | None, python: Path | None) -> Interpreter:
    """The Python to ask: `python` where it is named, else that of an installed environment.

    Raises ProbeError where there is none.
    """
    recipe = recipe_of(engine)
    if python is None:
        there = environment_of(recipe.engine, version)
        variables = recipe.variables(there.directory, there.version)
        return Interpreter(recipe=recipe, python=there.python, variables=variables)
    if not python.is_file():
        raise ProbeError(
            f"there is no Python at {python}",
            hint=f"name the engine's own, or run: eyas engine install {recipe.engine}",
        )
    return Interpreter(recipe=recipe, python=python.absolute(), variables={})


def record_of(
    interpreter: Interpreter,
    runner: str | None,
    checkpoint: Checkpoint,
    target: TargetFacts | None,
    launch: Launch,
    limits: Limits,
) -> Record:
    """The probe's record of what the engine does with `checkpoint`; raises ProbeError."""
    engine = interpreter.recipe.engine
    with tempfile.TemporaryDirectory(prefix="eyas-probe-") as folder:
        job = job_of(engine, runner, checkpoint, target, launch, Path(folder))
        (record,) = ask(interpreter, [job], limits)
    if isinstance(record, ProbeError):
        raise record
    return record


def compared(
    record: Record,
    runner: str | None,
    checkpoint: Checkpoint,
    target: TargetFacts | None,
    launch: Launch,
) -> Answer:
    """`record` beside the contract of its engine.

    A version outside every contract is compared with the nearest that has one. Raises ProbeError
    for a record in which the probe failed.
    """
    observed = Observed.parse(record)
    ref = EngineRef(
        name=observed.engine, version=_covered(observed.engine, observed.version), runner=runner
    )
    served = read(ref, checkpoint, target=target, launch=launch)
    if isinstance(served, NotChecked):
        return Answer(
            checkpoint=checkpoint,
            observed=observed,
            contract=None,
            reason=served.reason,
            disagreements=(),
        )
    return Answer(
        checkpoint=checkpoint,
        observed=observed,
        contract=f"{ref.name} {ref.version}",
        reason="",
        disagreements=disagreements(served, observed, checkpoint.files),
    )


def _covered(engine: str, version: str) -> str:
    known = engine_named(engine)
    typed = Version.parse(version)
    if known is None:
        raise EngineError(f"eyas knows no engine {engine!r}")
    if typed is None or known.covers(typed):
        return version
    return known.oldest if typed < version_of(known.oldest) else known.newest
