"""eyas check: what engines will compute with a drafter, against what was trained."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from eyas.cli.options import (
    OUTPUT,
    SUBJECT,
    Color,
    ColorOption,
    Draft,
    LaunchOption,
    TargetOption,
    launch_of,
    target_of,
)
from eyas.cli.output import hint, result, style_of

VERDICT = "Verdict"


class ReportFormat(StrEnum):
    """How the report is written."""

    HUMAN = "human"
    CONCISE = "concise"
    JSON = "json"


class Threshold(StrEnum):
    """The least severity that makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"


def check(
    draft: Draft,
    engine: Annotated[
        list[str],
        typer.Option(
            "--engine",
            metavar="ENGINE@VERSION[:RUNNER]",
            help="Engines that will serve it: sglang@0.5.23,vllm@0.33.0:v2. Repeatable.",
            rich_help_panel=SUBJECT,
        ),
    ],
    target: TargetOption = None,
    launch: LaunchOption = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="A check that could not run counts too.", rich_help_panel=VERDICT
        ),
    ] = False,
    fail_on: Annotated[
        Threshold,
        typer.Option("--fail-on", help="What makes the exit code 1.", rich_help_panel=VERDICT),
    ] = Threshold.ERROR,
    form: Annotated[
        ReportFormat,
        typer.Option(
            "--format", help="For a reader, for grep, for a program.", rich_help_panel=OUTPUT
        ),
    ] = ReportFormat.HUMAN,
    color: ColorOption = Color.AUTO,
) -> None:
    """Compare what was trained with what engines will compute, and explain each difference.

    eyas check ./draft --engine sglang@0.5.10.post1,vllm@0.33.0

    eyas check org/draft --target org/model --engine sglang@0.5.23 --format json

    Exit code 0: nothing found. 1: findings. 2: could not judge.
    """
    from eyas import check as checking
    from eyas.check.render import Format, render
    from eyas.checkpoint import open_checkpoint
    from eyas.engines import EngineRef

    refs = EngineRef.parse_list(",".join(engine))
    setting = launch_of(launch)
    checkpoint = open_checkpoint(draft)
    facts = target_of(target, checkpoint)
    report = checking.check(checkpoint, refs, target=facts, launch=setting)
    result(render(report, Format(form.value), style_of(color)))
    if report.findings:
        hint(f"eyas explain {report.findings[0].code}")
    code = report.exit_code(fail_on=checking.Severity(fail_on.value), strict=strict)
    if code:
        raise typer.Exit(code)
