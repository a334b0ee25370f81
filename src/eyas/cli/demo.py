"""eyas demo: the story of a lost layer, run for real on a small model."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from eyas.cli.options import OUTPUT, Color, ColorOption, QuietOption
from eyas.cli.output import hint, result, style_of

if TYPE_CHECKING:
    from eyas.checks.render import Style
    from eyas.demo.acts import Act


def demo(
    keep: Annotated[
        str | None,
        typer.Option("--keep", metavar="DIR", help="A new directory for the drafters it writes."),
    ] = None,
    max_new: Annotated[
        int, typer.Option("--max-new", min=8, help="New tokens for each prompt.")
    ] = 24,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="The last comparison as .png, .svg or .pdf; with --keep it is in DIR anyway.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    quiet: QuietOption = False,
    color: ColorOption = Color.AUTO,
) -> None:
    """Watch a drafter draft, lose its layer, and get it back.

    eyas demo

    eyas demo --keep ./eyas-demo --max-new 64

    SmolLM2-135M-Instruct and a drafter that eyas trained for it answer 24
    prompts on the CPU. Every number is measured while you wait; every verdict
    comes from the files. Exit code 1 if a step does not go as it should.
    """
    from tempfile import TemporaryDirectory

    from eyas.decode.picture import can_draw, drawable

    if plot is not None:
        drawable(plot)
    with TemporaryDirectory(prefix="eyas-demo-") as temporary:
        folder = Path(temporary) if keep is None else _new_directory(keep)
        if plot is None and keep is not None and can_draw():
            plot = folder / "acceptance.png"
        failed = _play(folder, max_new, quiet, style_of(color), plot)
    if keep is not None:
        flat = quote(str(folder / "flattened"))
        hint(f"eyas check {flat} --engine sglang@0.5.10.post1,vllm@0.33.0")
    if failed:
        raise typer.Exit(1)


def _play(folder: Path, max_new: int, quiet: bool, style: Style, plot: Path | None) -> int:
    """Plays the acts, printing each as it ends, then the comparison; returns how many failed."""
    import torch

    from eyas.checkpoint import open_checkpoint, open_target
    from eyas.cli.progress import counted, steps
    from eyas.data.answers import chat_ids
    from eyas.data.prompts import read_prompts
    from eyas.decode.answers import TokenisedPrompt
    from eyas.demo import ending
    from eyas.demo.acts import Scene, tell
    from eyas.demo.assets import PROMPTS, trained_here
    from eyas.model.load import load_target, load_tokenizer
    from eyas.model.smollm2 import ensure_smollm2

    with steps(quiet=quiet) as say:
        directory = ensure_smollm2(say)
        say("loading SmolLM2-135M-Instruct")
        target = load_target(directory, dtype=torch.float32)
        fast_target = load_target(directory, dtype=torch.bfloat16)
        tokenizer = load_tokenizer(directory)
    prompts = [
        TokenisedPrompt(category=prompt.category, ids=tuple(chat_ids(tokenizer, prompt)))
        for prompt in read_prompts(PROMPTS)
    ]
    failed = 0
    with counted(quiet=quiet) as watch:
        scene = Scene(
            target=target,
            fast_target=fast_target,
            target_facts=open_target(directory),
            checkpoint=open_checkpoint(trained_here()),
            prompts=prompts,
            folder=folder,
            max_new=max_new,
            watch=watch,
        )
        for act in tell(scene):
            result(text_of(act, style))
            failed += not act.passed
    result(ending.text(scene.measured, style))
    if plot is not None:
        ending.picture(scene.measured, plot)
        result(f"\n  drawn in {plot}\n")
    return failed


def text_of(act: Act, style: Style) -> str:
    """An act as a title, its verdict, and its details under it."""
    mark, kind = ("✓", "good") if act.passed else ("✗", "error")
    lines = [
        style.paint(style.fit(f"{act.number}. {act.title}"), "bold"),
        style.paint(style.fit(f"   {mark} {act.verdict}"), kind),
        *(style.fit(f"     {detail}") for detail in act.details),
    ]
    return "\n".join(lines) + "\n\n"


def _new_directory(name: str) -> Path:
    from eyas.errors import UsageError, reason_of

    folder = Path(name)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(f"{name} exists already", hint="name a new directory") from None
    except OSError as error:
        raise UsageError(
            f"{name} cannot be made: {reason_of(error)}", hint="name a directory you may write to"
        ) from None
    return folder
