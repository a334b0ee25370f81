"""eyas diagnose: where a drafter's acceptance was lost, proved by number."""

from __future__ import annotations

import json
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eyas.cli.observed import chosen_tau, shares_of, speeds_of
from eyas.cli.options import (
    OUTPUT,
    SUBJECT,
    Color,
    ColorOption,
    Draft,
    FormatOption,
    LaunchOption,
    Plainness,
    QuietOption,
    launch_of,
)
from eyas.cli.output import hint, remark, result, style_of
from eyas.cli.running import RUN, StepsOption, TargetToRun
from eyas.errors import UsageError

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts
    from eyas.checks.render import Style
    from eyas.diagnose.outcome import Diagnosis
    from eyas.engines import EngineRef, Launch
    from eyas.spec import Landing

OBSERVED = "What a server showed"


def diagnose(
    draft: Draft,
    target: TargetToRun,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="ENGINE@VERSION[:RUNNER]",
            help="The engine that serves it. Without it the files alone are judged.",
            rich_help_panel=SUBJECT,
        ),
    ] = None,
    launch: LaunchOption = None,
    prompts: Annotated[
        Path | None,
        typer.Option(
            "--prompts",
            metavar="FILE",
            help="JSON Lines of id, category, messages, or Spec-Bench's question_id and turns."
            " Without it: eyas's own 24.",
            rich_help_panel=SUBJECT,
        ),
    ] = None,
    states: Annotated[
        list[Path] | None,
        typer.Option(
            "--states",
            metavar="DIRECTORY",
            help="Its training states (states-*.safetensors); may be repeated.",
            rich_help_panel=SUBJECT,
        ),
    ] = None,
    observed: Annotated[
        float | None,
        typer.Option(
            "--observed",
            metavar="TAU",
            help="Its tokens a round, the bonus token included (accept_len).",
            rich_help_panel=OBSERVED,
        ),
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(
            "--observed-rates",
            metavar="A,B,C",
            help="Shares of rounds that accepted at least 1, 2, 3 drafts, as 0.47,0.22,0.09.",
            rich_help_panel=OBSERVED,
        ),
    ] = None,
    speed: Annotated[
        str | None,
        typer.Option(
            "--speed",
            metavar="WITH,WITHOUT",
            help="Tokens a second with speculation and without, as 25,90.",
            rich_help_panel=OBSERVED,
        ),
    ] = None,
    steps: StepsOption = 3,
    values: Annotated[
        bool,
        typer.Option(
            "--values/--no-values",
            help="Whether to look at the numbers in the files too.",
            rich_help_panel=RUN,
        ),
    ] = True,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE.html",
            help="The whole as a page that needs nothing beside it.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    form: FormatOption = Plainness.HUMAN,
    quiet: QuietOption = False,
    color: ColorOption = Color.AUTO,
) -> None:
    """Find where acceptance was lost: the cause, what it costs in tau, and what to type.

    eyas diagnose ./draft --target ./model --engine sglang@0.5.10.post1

    eyas diagnose ./draft --target smollm2 --engine sglang@0.5.23 --launch
    speculative_algorithm=EAGLE --observed 1.00 --speed 25,90 --report why.html

    The target answers a few prompts, once. On its answers the drafter is replayed as trained and as
    the engine has it, each difference is priced, and where none explains the loss other readings of
    the files are tried. With --states it is scored on its training states too: whether it is weak,
    or the engine loses it. Exit code 0: nothing is blamed. 1: something is. 2: could not judge.
    """
    seen = chosen_tau(observed, rates, steps)
    shares = shares_of(rates, steps)
    speeds = speeds_of(speed)
    setting = launch_of(launch)
    if launch and engine is None:
        raise UsageError("--launch is for an engine", hint="add --engine sglang@0.5.23")
    if report is not None:
        from eyas.diagnose.page import writable

        writable(report)
    from eyas.checkpoint import open_checkpoint
    from eyas.cli.progress import steps as progress
    from eyas.data.questions import read_any_prompts
    from eyas.data.states import StateStore
    from eyas.diagnose import diagnosis as judging
    from eyas.diagnose.bench import open_bench
    from eyas.engines import EngineRef

    ref = None if engine is None else EngineRef.parse(engine)
    checkpoint = open_checkpoint(draft, weights=True)
    if prompts is not None:
        read_any_prompts(prompts)  # refused before a target is loaded
    store = StateStore(states) if states else None
    with progress(quiet=quiet) as say:
        bench = open_bench(target, prompts, say)
        found = judging.diagnose(
            checkpoint,
            bench,
            ref,
            setting,
            observed_tau=seen,
            observed_rates=shares,
            speeds=speeds,
            states=store,
            steps=steps,
            values=values,
            say=say,
        )
    if report is not None:
        _write_page(report, found, bench.facts, _landing(checkpoint, ref, setting, bench.facts))
    if form is Plainness.JSON:
        result(_document(found))
    else:
        result(_text(found, style_of(color)))
    hint(found.first.command if report is None else f"open {quote(str(report))}")
    if not found.sound:
        raise typer.Exit(1)
    if ref is not None and not found.served:  # the files are, and that is not what was asked
        remark(f"error: {ref} was not judged, the files alone were\n")
        raise typer.Exit(2)


def _text(found: Diagnosis, style: Style) -> str:
    """The verdict, then what it stands on."""
    verdict, _, rest = found.text().partition("\n")
    lines = [style.paint(style.wrap(verdict, indent=""), "bold")]
    lines += [style.wrap(line, indent=" " * 7) for line in rest.split("\n")]
    return style.fit("\n".join(lines))


def _document(found: Diagnosis) -> str:
    """One JSON object; a number that is none (a drafter of NaN has them) is null."""
    document = _finite(found.json())
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    from math import isfinite

    if isinstance(value, dict):
        return {key: _finite(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(held) for held in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _landing(
    checkpoint: Checkpoint, ref: EngineRef | None, launch: Launch, target: TargetFacts
) -> Landing | None:
    """What the engine loads, where one was named and it loads anything."""
    from eyas import engines
    from eyas.errors import NotADrafterError
    from eyas.spec import Served

    if ref is None:
        return None
    try:
        view = engines.read(ref, checkpoint, target=target, launch=launch)
    except NotADrafterError:  # a cause by now
        return None
    return view.landing if isinstance(view, Served) else None


def _write_page(file: Path, found: Diagnosis, target: TargetFacts, landing: Landing | None) -> None:
    from eyas.diagnose.page import page, write
    from eyas.model.load import load_tokenizer

    tokenizer = load_tokenizer(target.directory)
    write(file, page(found, lambda ids: str(tokenizer.decode(list(ids))), landing))
