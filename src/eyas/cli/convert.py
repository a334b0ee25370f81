"""eyas convert: the same weights under the names and the config that an engine reads."""

from __future__ import annotations

from shlex import quote
from typing import Annotated

import typer

from eyas.cli.options import SUBJECT, Draft, TargetOption, target_of
from eyas.cli.output import hint, result


def convert(
    draft: Draft,
    out: Annotated[str, typer.Argument(metavar="OUT", help="A new directory.")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="ENGINE@VERSION[:RUNNER]",
            help="The engine that shall compute what was trained.",
            rich_help_panel=SUBJECT,
        ),
    ],
    target: TargetOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and write nothing.")
    ] = False,
) -> None:
    """Write a drafter so that an engine computes exactly what was trained, or refuse.

    eyas convert ./draft ./draft-sglang --to sglang@0.5.10.post1

    eyas convert ./draft ./draft-vllm --to vllm@0.33.0 --dry-run

    Names and config change, weights do not. The result is read again and checked before it
    appears at OUT.
    """
    from eyas import convert as converting
    from eyas.checkpoint import open_checkpoint

    goal = converting.parse_goal(to)
    checkpoint = open_checkpoint(draft, weights=not dry_run)
    facts = target_of(target, checkpoint)
    if dry_run:
        result(converting.plan(checkpoint, goal, target=facts).text())
        return
    done = converting.convert(checkpoint, out, goal, target=facts)
    result(done.text())
    hint(f"eyas check {quote(out)} --engine {goal}")
