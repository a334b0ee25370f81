"""eyas landing: where each tensor goes."""

from __future__ import annotations

from shlex import quote
from typing import Annotated

import typer

from eyas.cli.options import (
    SUBJECT,
    Color,
    ColorOption,
    Draft,
    FormatOption,
    LaunchOption,
    Plainness,
    TargetOption,
    launch_of,
    target_of,
)
from eyas.cli.output import hint, result, style_of


def landing(
    draft: Draft,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="ENGINE@VERSION[:RUNNER]",
            help="The engine that loads it.",
            rich_help_panel=SUBJECT,
        ),
    ],
    target: TargetOption = None,
    launch: LaunchOption = None,
    form: FormatOption = Plainness.HUMAN,
    color: ColorOption = Color.AUTO,
) -> None:
    """Show which tensor fills which parameter in one engine, and what is left over.

    eyas landing ./draft --engine sglang@0.5.10.post1

    eyas landing ./draft --engine vllm@0.33.0:v2 --format json
    """
    from eyas import engines
    from eyas.checkpoint import open_checkpoint
    from eyas.checks.render import landing as table
    from eyas.errors import EngineError
    from eyas.spec import NotChecked

    ref = engines.EngineRef.parse(engine)
    checkpoint = open_checkpoint(draft)
    facts = target_of(target, checkpoint)
    served = engines.read(ref, checkpoint, target=facts, launch=launch_of(launch))
    if isinstance(served, NotChecked):
        newest = next(e.newest for e in engines.ENGINES if e.name == ref.name)
        raise EngineError(f"{ref} is not covered: {served.reason}", hint=f"try {ref.name}@{newest}")
    if form is Plainness.JSON:
        result(table.render_json(served, draft))
    else:
        result(table.render_human(served, draft, style_of(color)))
    hint(f"eyas check {quote(draft)} --engine {ref}")
    if served.refusal is not None:
        raise typer.Exit(1)
