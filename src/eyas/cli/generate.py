"""eyas generate: an answer as it comes, with a drafter or without."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from eyas.cli.options import OUTPUT, Color, ColorOption
from eyas.cli.output import hint, result, style_of
from eyas.cli.running import (
    RUN,
    DeviceOption,
    Dtype,
    DtypeOption,
    StepsOption,
    TargetToRun,
    fitting,
    load,
    say_if_inexact,
)
from eyas.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from eyas.checks.render import Style
    from eyas.decode.record import Record
    from eyas.decode.streamed_text import Detokeniser


def generate(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[DRAFT] PROMPT",
            help="The drafter, if there is one, then the prompt; - reads the prompt from stdin.",
        ),
    ],
    target: TargetToRun,
    steps: StepsOption = 3,
    max_new: Annotated[
        int, typer.Option("--max-new", min=1, help="At most so many tokens.", rich_help_panel=RUN)
    ] = 256,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="The prompt as it is, no chat template.", rich_help_panel=RUN),
    ] = False,
    dtype: DtypeOption = Dtype.FLOAT32,
    device: DeviceOption = "cpu",
    show_accepted: Annotated[
        bool,
        typer.Option(
            "--show-accepted",
            help="Colour the tokens that were drafted; without colour they stand in brackets.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    stats: Annotated[
        bool,
        typer.Option(
            "--stats",
            help="End with what was accepted and what engines would call it, on stderr.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    baseline: Annotated[
        bool,
        typer.Option(
            "--baseline",
            help="Answer again without the drafter, so that --stats knows a round's cost R.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    color: ColorOption = Color.AUTO,
) -> None:
    """Answer a prompt greedily, as fast as the drafter allows.

    eyas generate ./draft --target smollm2 "Name three rivers." --show-accepted --stats

    eyas generate --target org/model --raw - < prompt.txt

    In float32 the text is the target's own, whatever the drafter proposes; in other types rounding
    may decide between two tokens. stdout carries the text alone.
    """
    draft, prompt = _draft_and_prompt(words)
    if draft is None and (baseline or show_accepted):
        raise UsageError("without a drafter nothing is drafted", hint="eyas generate DRAFT PROMPT")
    from eyas.checkpoint import open_checkpoint
    from eyas.decode import greedy
    from eyas.decode.record import Record
    from eyas.decode.streamed_text import Detokeniser
    from eyas.model.trained import trained_drafter

    checkpoint = None if draft is None else open_checkpoint(draft, weights=True)
    model, tokenizer = load(target, dtype, device)
    drafter = None if checkpoint is None else trained_drafter(checkpoint, model)
    if drafter is not None:
        say_if_inexact(dtype)
    ids = _prompt_ids(tokenizer, prompt, raw)
    fitting(model, len(ids) + max_new, "the prompt")
    say = _teller(Detokeniser(decode=_decoder(tokenizer)), style_of(color), show_accepted)
    answer = greedy.generate(
        model,
        ids,
        max_new=max_new,
        drafter=drafter,
        steps=0 if drafter is None else steps,
        hear=say,
    )
    say((), 0)
    plain = [greedy.generate(model, ids, max_new=max_new)] if baseline else None
    if stats or baseline:
        sys.stderr.write(_stats(Record.of([answer], plain)))
    if draft is not None and not (stats or baseline):
        hint("the same with --stats, or eyas eval over a file of prompts")


def _draft_and_prompt(words: Sequence[str]) -> tuple[str | None, str]:
    if len(words) > 2:
        raise UsageError(
            f"{len(words)} arguments were given, not a drafter and a prompt",
            hint="put the prompt in quotes",
        )
    prompt = words[-1]
    if prompt == "-":
        prompt = sys.stdin.read()
    if not prompt:
        raise UsageError("the prompt is empty", hint='eyas generate DRAFT --target T "a question"')
    return (words[0] if len(words) == 2 else None), prompt


def _prompt_ids(tokenizer: PreTrainedTokenizerBase, prompt: str, raw: bool) -> list[int]:
    if raw:
        return list(tokenizer(prompt)["input_ids"])
    from eyas.data.answers import chat_ids
    from eyas.data.prompts import one_turn

    if tokenizer.chat_template is None:
        raise UsageError("this target has no chat template", hint="add --raw")
    return chat_ids(tokenizer, one_turn("prompt", "prompt", prompt))


def _decoder(tokenizer: PreTrainedTokenizerBase) -> Callable[[Sequence[int]], str]:
    def decode(ids: Sequence[int]) -> str:
        return str(
            tokenizer.decode(
                list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )

    return decode


def _teller(
    text: Detokeniser, style: Style, show_accepted: bool
) -> Callable[[Sequence[int], int], None]:
    """Writes each round's text to stdout; a round of no token ends the answer with a newline."""
    from eyas.decode.streamed_text import Marks

    opening, closing = ("⟦", "⟧") if style.unicode else ("[[", "]]")
    paint = (lambda piece: style.paint(piece, "good")) if style.color else None
    marks = Marks(opening=opening, closing=closing, paint=paint)

    def say(tokens: Sequence[int], drafted: int) -> None:
        pieces = [
            marks.piece(text.push(token), drafted=show_accepted and index < drafted)
            for index, token in enumerate(tokens)
        ]
        if not tokens:
            pieces = [marks.piece(text.finish(), drafted=False), marks.end(), "\n"]
        result(_writable("".join(pieces)))

    return say


def _writable(text: str) -> str:
    """`text` in the characters that stdout can encode."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def _stats(record: Record) -> str:
    from eyas.engines.reported import reported, text_of

    lines = "\n".join(("", *record.lines())) + "\n"
    tally = record.tally
    return lines if tally is None or not tally.rounds else f"{lines}\n{text_of(reported(tally))}"
