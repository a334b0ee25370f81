"""eyas eval: what a drafter's proposals are worth, over a file of prompts."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

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
    QuietOption,
    launch_of,
)
from eyas.cli.output import hint, result, style_of
from eyas.cli.running import (
    RUN,
    DeviceOption,
    Dtype,
    DtypeOption,
    StepsOption,
    TargetToRun,
    facts_of,
    fitting,
    load,
    say_if_inexact,
)
from eyas.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from eyas.data.prompts import Prompt
    from eyas.decode.trial import NamedPrompt
    from eyas.model.target import Target


def eval(  # noqa: A001 - the command's name; nothing here evaluates strings
    draft: Draft,
    target: TargetToRun,
    prompts: Annotated[
        Path,
        typer.Option(
            "--prompts",
            metavar="FILE",
            help="JSON Lines of id, category, messages, or Spec-Bench's question_id and turns.",
            rich_help_panel=SUBJECT,
        ),
    ],
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit-per-category",
            min=1,
            metavar="N",
            help="The first N prompts of each category.",
            rich_help_panel=SUBJECT,
        ),
    ] = None,
    served: Annotated[
        list[str] | None,
        typer.Option(
            "--as-served",
            metavar="ENGINE@VERSION[:RUNNER]",
            help="Beside it, the drafter as this engine will have it. Repeatable.",
            rich_help_panel=SUBJECT,
        ),
    ] = None,
    launch: LaunchOption = None,
    steps: StepsOption = 3,
    max_new: Annotated[
        int, typer.Option("--max-new", min=2, help="New tokens a prompt.", rich_help_panel=RUN)
    ] = 128,
    baseline: Annotated[
        bool,
        typer.Option(
            "--baseline",
            help="Answer with the target alone too: speed, R, and whether answers are the same.",
            rich_help_panel=RUN,
        ),
    ] = False,
    dtype: DtypeOption = Dtype.FLOAT32,
    device: DeviceOption = "cpu",
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Of the intervals.", rich_help_panel=RUN)
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Keep each answer here as a line; a second run goes on from there.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Acceptance by draft position as .png, .svg or .pdf.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    form: FormatOption = Plainness.HUMAN,
    quiet: QuietOption = False,
    color: ColorOption = Color.AUTO,
) -> None:
    """Measure acceptance: tau by category with intervals, and the rate at each draft position.

    eyas eval ./draft --target smollm2 --prompts question.jsonl --limit-per-category 20

    eyas eval ./draft --target smollm2 --prompts p.jsonl --as-served sglang@0.5.10.post1

    Decoding is greedy, and exact in float32. With --as-served each engine's view of the same files
    drafts over the same answers, untimed; matrices that it leaves uninitialised are filled in three
    ways, and the result is their range.
    """
    from eyas.checkpoint import open_checkpoint
    from eyas.cli.progress import counted
    from eyas.data.questions import limited, read_any_prompts
    from eyas.decode.arms import as_served, as_trained
    from eyas.decode.evaluation_json import as_json
    from eyas.decode.evaluation_text import text
    from eyas.decode.outcomes import Outcomes, settings_of
    from eyas.decode.picture import draw, drawable
    from eyas.decode.trial import Trial
    from eyas.engines import EngineRef

    refs = [ref for name in served or () for ref in EngineRef.parse_list(name)]
    setting = launch_of(launch)
    if launch and not refs:
        raise UsageError("--launch is for an engine", hint="add --as-served sglang@0.5.23")
    if plot is not None:
        drawable(plot)
    chosen = limited(read_any_prompts(prompts), limit)
    checkpoint = open_checkpoint(draft, weights=True)
    outcomes = Outcomes(
        out,
        settings_of(checkpoint, target=target, steps=steps, max_new=max_new, dtype=dtype.value),
    )
    model, tokenizer = load(target, dtype, device)
    say_if_inexact(dtype)
    named = [_named(model, tokenizer, prompt, max_new) for prompt in chosen]
    facts = facts_of(model)
    arms = [as_trained(checkpoint, model)]
    arms += [as_served(ref, checkpoint, model, facts, setting) for ref in refs]
    with counted(quiet=quiet) as watch:
        trial = Trial(
            target=model,
            prompts=named,
            steps=steps,
            max_new=max_new,
            outcomes=outcomes,
            watch=watch,
        )
        evaluation = trial.run(arms, baseline=baseline, seed=seed)
    heading = f"{draft} for {target}: K = {steps}, greedy, {dtype.value}, {max_new} new tokens"
    if plot is not None and evaluation.curves:
        draw(
            evaluation.curves,
            plot,
            title="Acceptance by draft position",
            subtitle=f"{heading}, {len(named)} prompts",
        )
    if form is Plainness.JSON:
        subject = {
            "draft": draft,
            "target": target,
            "prompts": str(prompts),
            "dtype": dtype.value,
            "device": device,
        }
        result(as_json(evaluation, subject))
    else:
        result(text(evaluation, heading, style_of(color)))
    newest = ",".join(map(str, EngineRef.newest_for(checkpoint)))
    hint(f"eyas check {quote(draft)} --engine {refs[0] if refs else newest}")


def _named(
    target: Target, tokenizer: PreTrainedTokenizerBase, prompt: Prompt, max_new: int
) -> NamedPrompt:
    from eyas.data.answers import chat_ids
    from eyas.decode.trial import NamedPrompt

    ids = chat_ids(tokenizer, prompt)
    fitting(target, len(ids) + max_new, f"prompt {prompt.id}")
    return NamedPrompt(id=prompt.id, category=prompt.category, ids=tuple(ids))
