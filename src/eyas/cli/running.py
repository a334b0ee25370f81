"""The options of commands that run a target, and how they are read."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from eyas.cli.options import SUBJECT
from eyas.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from eyas.checkpoint import TargetFacts
    from eyas.model.target import Target

RUN = "How it runs"


class Dtype(StrEnum):
    """The type that target and drafter compute in."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


TargetToRun = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="TARGET",
        help="The target model, which is run: a directory, org/name, or smollm2.",
        rich_help_panel=SUBJECT,
    ),
]
StepsOption = Annotated[
    int, typer.Option("--steps", min=1, help="Draft tokens a round, K.", rich_help_panel=RUN)
]
DtypeOption = Annotated[
    Dtype,
    typer.Option(
        "--dtype",
        help="float32 is exact: with it the answer is the target's own, token for token.",
        rich_help_panel=RUN,
    ),
]
DeviceOption = Annotated[
    str, typer.Option("--device", metavar="DEVICE", help="cpu, cuda, cuda:1.", rich_help_panel=RUN)
]


def load(name: str, dtype: Dtype, device: str) -> tuple[Target, PreTrainedTokenizerBase]:
    """The target `name` and its tokenizer; UsageError for a device that is not there."""
    import torch

    from eyas.model.load import load_target, load_tokenizer, target_directory

    try:
        place = torch.device(device)
        torch.zeros(1, device=place).item()
    except (RuntimeError, AssertionError, ImportError):
        # which one depends on the device, and on what torch was built with
        raise UsageError(
            f"there is no device {device!r} here that torch can compute on", hint="--device cpu"
        ) from None
    directory = target_directory(name)
    target = load_target(directory, dtype=getattr(torch, dtype.value), device=place)
    return target, load_tokenizer(directory)


def facts_of(target: Target) -> TargetFacts:
    """What the config of a loaded target states, as engines read it."""
    from eyas.checkpoint import open_target

    return open_target(target.facts.directory)


def fitting(target: Target, tokens: int, what: str) -> None:
    """Raises UsageError when `what`, so many tokens long, exceeds the target's positions."""
    limit = None if target.sizes is None else target.sizes.max_positions
    if limit is not None and tokens > limit:
        raise UsageError(
            f"{what} and the new tokens are {tokens} together, the target has {limit} positions",
            hint="shorten it or lower --max-new",
        )


def say_if_inexact(dtype: Dtype) -> None:
    """Says on stderr that in `dtype` a drafter may change the answer."""
    import sys

    if dtype is not Dtype.FLOAT32:
        sys.stderr.write(
            f"note: in {dtype.value} a forward of several tokens rounds unlike one of a single "
            "token, so an answer may differ from the target's own; float32 is exact\n"
        )
