"""eyas check: what engines will compute with a drafter, against what was trained."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from eyas.cli.options import DRAFT, OUTPUT, SUBJECT, Color, ColorOption, LaunchOption
from eyas.cli.output import hint, remark, result, style_of
from eyas.errors import UsageError

VERDICT = "Verdict"


class ReportFormat(StrEnum):
    """How the report is written."""

    HUMAN = "human"
    CONCISE = "concise"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


class Threshold(StrEnum):
    """The least severity that makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


def check(
    draft: Annotated[
        str | None,
        typer.Argument(
            metavar="DRAFT",
            show_default=False,
            help=DRAFT,
        ),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            metavar="ENGINE@VERSION[:RUNNER]",
            help="Engines that will serve it: sglang@0.5.23,vllm@0.33.0:v2. Repeatable."
            " Without it: the newest version that eyas knows of each.",
            rich_help_panel=SUBJECT,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="TARGET",
            help="The target model: a directory or org/name@revision. Its config is read; its"
            " embedding too, with --values.",
            rich_help_panel=SUBJECT,
        ),
    ] = None,
    launch: LaunchOption = None,
    values: Annotated[
        bool,
        typer.Option(
            "--values",
            help="Read the weights too and look for placeholders: zeros, NaN, fresh matrices.",
            rich_help_panel=SUBJECT,
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="A check that could not run counts too.", rich_help_panel=VERDICT
        ),
    ] = False,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="RULES",
            help="Only these rules: codes, their beginnings, or names: L2,T701. Repeatable.",
            rich_help_panel=VERDICT,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="RULES",
            help="Not these rules; the report says which were left out. Repeatable.",
            rich_help_panel=VERDICT,
        ),
    ] = None,
    fail_on: Annotated[
        Threshold,
        typer.Option("--fail-on", help="What makes the exit code 1.", rich_help_panel=VERDICT),
    ] = Threshold.ERROR,
    list_rules: Annotated[
        bool,
        typer.Option(
            "--list-rules", help="List the rules instead of checking.", rich_help_panel=OUTPUT
        ),
    ] = False,
    form: Annotated[
        ReportFormat,
        typer.Option(
            "--format",
            help="For a reader, for grep, for a program, for code scanning, for GitHub Actions.",
            rich_help_panel=OUTPUT,
        ),
    ] = ReportFormat.HUMAN,
    color: ColorOption = Color.AUTO,
) -> None:
    """Compare what was trained with what engines will compute, and explain each difference.

    eyas check ./draft --engine sglang@0.5.10.post1,vllm@0.33.0

    eyas check org/draft --target org/model --engine sglang@0.5.23 --format json

    Exit code 0: nothing found. 1: findings. 2: could not judge.
    """
    if list_rules:
        _list_rules(select or (), ignore or (), form)
        return
    if draft is None:
        raise UsageError("Missing argument 'DRAFT'", hint="see: eyas check --help")
    import eyas
    from eyas.engines import EngineRef
    from eyas.engines.serving import serving_command

    report = eyas.check(
        draft,
        target=target,
        engines=engine or (),
        launch=launch or (),
        select=select or (),
        ignore=ignore or (),
        values=values,
    )
    if not engine:
        judged = " and ".join(outcome.label for outcome in report.engines)
        remark(f"no --engine was named: judged by the newest that eyas knows, {judged}\n")
    result(eyas.render(report, eyas.Format(form.value), style_of(color)))
    if report.findings:
        hint(f"eyas explain {report.findings[0].code}")
    elif engine and all(outcome.outcome is eyas.Outcome.PASS for outcome in report.engines):
        ref = EngineRef.parse_list(",".join(engine))[0]
        hint(serving_command(ref, draft, target or "TARGET"))
    code = report.exit_code(fail_on=eyas.Severity(fail_on.value), strict=strict)
    if code:
        raise typer.Exit(code)


def _list_rules(select: Sequence[str], ignore: Sequence[str], form: ReportFormat) -> None:
    from eyas.checks import Selection
    from eyas.checks.render import rules as listing

    rules = Selection.parse(select, ignore).rules
    if form is ReportFormat.JSON:
        result(listing.render_json(rules))
    elif form is ReportFormat.HUMAN or form is ReportFormat.CONCISE:
        result(listing.render_human(rules))
        hint("eyas explain CODE")
    else:
        raise UsageError(
            f"--list-rules is not written as {form.value}", hint="use --format json, or none"
        )
