"""eyas convert: the same drafter in the files that an engine or a dialect reads."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from eyas.cli.options import (
    OUTPUT,
    SUBJECT,
    Draft,
    FormatOption,
    LaunchOption,
    Plainness,
    QuietOption,
    TargetOption,
    launch_of,
    target_of,
)
from eyas.cli.output import hint, result
from eyas.convert.share import Share
from eyas.errors import UsageError

if TYPE_CHECKING:
    from eyas.checkpoint import TargetFacts
    from eyas.convert.edits.vocabulary import Pruning

WEIGHTS = "What becomes of the weights"
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def convert(
    draft: Draft,
    out: Annotated[
        str,
        typer.Argument(metavar="OUT", help="A new directory, or a new .gguf file for llama.cpp."),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="ENGINE[@VERSION][:RUNNER]|DIALECT",
            help="The engine that shall compute what was trained, or a producer's dialect.",
            rich_help_panel=SUBJECT,
        ),
    ],
    target: TargetOption = None,
    launch: LaunchOption = None,
    embedding: Annotated[
        Share,
        typer.Option(
            "--embedding",
            help="As it is; add the target's; or leave it to the target, if it is the same.",
            rich_help_panel=WEIGHTS,
        ),
    ] = Share.KEEP,
    head: Annotated[
        Share, typer.Option("--head", help="The same of the head.", rich_help_panel=WEIGHTS)
    ] = Share.KEEP,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            metavar="TYPE",
            help="bfloat16, float16 or float32; numbers are rounded where they must be.",
            rich_help_panel=WEIGHTS,
        ),
    ] = None,
    draft_vocab: Annotated[
        int | None,
        typer.Option(
            "--draft-vocab",
            min=1,
            metavar="N",
            help="Keep the N tokens that are counted most, by --counts or --corpus.",
            rich_help_panel=WEIGHTS,
        ),
    ] = None,
    counts: Annotated[
        Path | None,
        typer.Option(
            "--counts",
            metavar="FILE",
            help='Counts of the target\'s tokens: JSON {"id": count}, or lines `id count`.',
            rich_help_panel=WEIGHTS,
        ),
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(
            "--corpus",
            metavar="FILE",
            help="Texts to count tokens in (.txt, or .jsonl with text or messages).",
            rich_help_panel=WEIGHTS,
        ),
    ] = None,
    shard_size: Annotated[
        str | None,
        typer.Option(
            "--shard-size",
            metavar="SIZE",
            help="Split the weights into files of at most so much, as 5GB.",
            rich_help_panel=WEIGHTS,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the plan and write nothing.", rich_help_panel=OUTPUT),
    ] = False,
    format: FormatOption = Plainness.HUMAN,  # noqa: A002 - the option's name
    quiet: QuietOption = False,
) -> None:
    """Write a drafter so that an engine computes exactly what was trained, or refuse.

    eyas convert ./draft ./draft-sglang --to sglang@0.5.10.post1

    eyas convert ./draft ./draft.gguf --to llamacpp --target ./target

    eyas convert ./draft ./draft-small --to vllm --draft-vocab 32000 --corpus chats.jsonl
    --target ./target

    Without a version the newest that eyas knows is meant. What is written is read again, checked
    for the engine and compared with the source, number by number, before it appears at OUT. A fact
    that no file can tell that engine is a refusal, with the engines that could be told.
    """
    from eyas import convert as converting
    from eyas.checkpoint import open_checkpoint
    from eyas.cli.progress import copied
    from eyas.engines.serving import serving_command

    goal = converting.parse_goal(to)
    checkpoint = open_checkpoint(draft, weights=not dry_run)
    facts = target_of(target, checkpoint)
    wishes = converting.Wishes(
        embedding=embedding,
        head=head,
        dtype=dtype,
        pruning=_pruning(draft_vocab, counts, corpus, facts),
        shard_bytes=None if shard_size is None else size_of(shard_size),
    )
    asked = launch_of(launch)
    as_json = format is Plainness.JSON
    if dry_run:
        plan = converting.plan(checkpoint, goal, target=facts, launch=asked, wishes=wishes, out=out)
        result(plan.json() if as_json else plan.text())
        hint("the same command without --dry-run")
        return
    with copied("written", quiet=quiet) as wrote:
        done = converting.convert(
            checkpoint, out, goal, target=facts, launch=asked, wishes=wishes, progress=wrote
        )
    result(done.json() if as_json else done.text())
    if isinstance(goal, converting.DialectGoal):
        hint(f"eyas check {quote(out)}{'' if target is None else f' --target {quote(target)}'}")
    else:
        hint(serving_command(goal, out, target or "TARGET"))


def size_of(text: str) -> int:
    """The bytes of ``5GB`` or ``500MiB``; raises UsageError."""
    typed = text.strip().upper()
    number = typed.rstrip("BKMGI")
    unit = typed[len(number) :] or "B"
    if not number.isdecimal() or unit not in _UNITS or not int(number[:20]):
        raise UsageError(f"{text!r} is no size", hint="write for example 5GB")
    return int(number[:20]) * _UNITS[unit]


def _pruning(
    size: int | None, counts: Path | None, corpus: Path | None, target: TargetFacts | None
) -> Pruning | None:
    from eyas.convert.counts import count_corpus, end_ids, read_counts
    from eyas.convert.edits.vocabulary import Pruning

    files = [file for file in (counts, corpus) if file is not None]
    if size is None and not files:
        return None
    if size is None or len(files) != 1:
        raise UsageError(
            "a draft vocabulary is cut to --draft-vocab N tokens by one file of counts",
            hint="give --draft-vocab with either --counts or --corpus",
        )
    found = read_counts(files[0]) if counts is not None else count_corpus(files[0], target)
    return Pruning(
        size=size,
        counts=found,
        always=() if target is None else end_ids(target),
        source=("--corpus" if counts is None else "--counts", str(files[0])),
    )
