"""eyas probe: what an installed engine itself makes of a drafter."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from eyas.cli.options import (
    OUTPUT,
    SUBJECT,
    Color,
    ColorOption,
    Draft,
    FormatOption,
    LaunchOption,
    Plainness,
    TargetOption,
    launch_of,
)
from eyas.cli.output import hint, remark, result, style_of

LIMITS = "Limits of the engine's process"


def probe(
    engine: Annotated[
        str,
        typer.Argument(
            metavar="ENGINE",
            help="vllm, sglang or llamacpp, as vllm@0.32.0 or vllm@0.32.0:v2 too.",
        ),
    ],
    draft: Draft,
    target: TargetOption = None,
    python: Annotated[
        Path | None,
        typer.Option(
            "--python",
            metavar="PATH",
            help="The Python that the engine is installed for, instead of eyas's own environment.",
            rich_help_panel=SUBJECT,
        ),
    ] = None,
    launch: LaunchOption = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="Also write it as a fixture, with headers and configs and no weights.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="Time.", rich_help_panel=LIMITS)
    ] = 300,
    memory: Annotated[
        float, typer.Option("--memory", min=0.5, help="GiB.", rich_help_panel=LIMITS)
    ] = 8,
    form: FormatOption = Plainness.HUMAN,
    color: ColorOption = Color.AUTO,
) -> None:
    """Let an installed engine load a drafter, and say where eyas's contract disagrees.

    eyas probe vllm ./draft --target ./model

    eyas probe vllm@0.32.0:v2 ./draft --target org/model --launch method=eagle3 --format json

    eyas probe sglang ./draft --target ./model --python /opt/sglang/bin/python

    The engine's own config parser, classes, weight iterator and loader run on the CPU, without the
    target's weights, over a copy of the drafter whose numbers say where they come from.

    Exit code 0: the contract says the same. 1: it disagrees. 2: could not ask.
    """
    from eyas.checkpoint import open_checkpoint, open_target
    from eyas.probe.answer import compared, interpreter_of, record_of
    from eyas.probe.fixture import write_fixture
    from eyas.probe.render import render_human, render_json
    from eyas.probe.run import Limits

    name, version, runner = _typed(engine)
    interpreter = interpreter_of(name, version, python)
    checkpoint = open_checkpoint(draft)
    facts = None if target is None else open_target(target)  # whether it fits the engine says
    settings = launch_of(launch)
    limits = Limits(seconds=seconds, memory=int(memory * 2**30))
    seen = record_of(interpreter, runner, checkpoint, facts, settings, limits)
    answer = compared(seen, runner, checkpoint, facts, settings)
    if version is not None and answer.observed.version != version:
        remark(f"{interpreter.python} has {answer.engine}, not {version}\n")
    if record is not None:
        write_fixture(record, checkpoint, facts, dict(settings.settings), runner, seen)
    if form is Plainness.JSON:
        result(render_json(answer, seen))
    else:
        result(render_human(answer, style_of(color)))
    if answer.disagreements:
        hint("report it: the engine is right, and eyas's contract is not")
        raise typer.Exit(1)
    hint(f"eyas check {quote(draft)} --engine {answer.engine}")


def _typed(engine: str) -> tuple[str, str | None, str | None]:
    """Engine, version and runner as typed; a version may be left out."""
    from eyas.engines import EngineRef
    from eyas.probe.environment import recipe_of

    name, separator, _ = engine.strip().partition("@")
    if separator:
        ref = EngineRef.parse(engine)
        return ref.name, ref.version, ref.runner
    bare, _, runner = name.partition(":")
    recipe = recipe_of(bare)
    if runner:
        return recipe.engine, None, EngineRef.parse(f"{bare}@{recipe.newest}:{runner}").runner
    return recipe.engine, None, None
