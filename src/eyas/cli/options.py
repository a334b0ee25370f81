"""The options that several commands share, and how they are read."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts
    from eyas.engines import Launch


class Color(StrEnum):
    """When to colour."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Plainness(StrEnum):
    """The two formats of a command that shows something."""

    HUMAN = "human"
    JSON = "json"


SUBJECT = "What is looked at"
OUTPUT = "Output"

DRAFT = "A directory, a .safetensors, .bin or .gguf file, or org/name@revision on the Hub."
Draft = Annotated[str, typer.Argument(metavar="DRAFT", help=DRAFT)]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="TARGET",
        help="The target model: a directory or org/name@revision. Only its config is read.",
        rich_help_panel=SUBJECT,
    ),
]
LaunchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--launch",
        metavar="KEY=VALUE",
        help="How the engine is launched, as speculative_algorithm=EAGLE3. Repeatable.",
        rich_help_panel=SUBJECT,
    ),
]
ColorOption = Annotated[
    Color, typer.Option("--color", help="When to colour.", rich_help_panel=OUTPUT)
]
FormatOption = Annotated[
    Plainness, typer.Option("--format", help="For a reader or a program.", rich_help_panel=OUTPUT)
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress.", rich_help_panel=OUTPUT)
]


def target_of(location: str | None, checkpoint: Checkpoint) -> TargetFacts | None:
    """The facts of the target at `location`, or None where none was named.

    Raises TargetError when `checkpoint` is a drafter for a target of another width.
    """
    if location is None:
        return None
    from eyas.checks import open_fitting

    return open_fitting(location, checkpoint)


def launch_of(settings: list[str] | None) -> Launch:
    """The launch that ``key=value`` settings describe."""
    from eyas.engines import Launch

    return Launch.parse(settings or [])
