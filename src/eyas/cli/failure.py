"""Failure: an error as one line for a reader, and as what a program asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from eyas.cli.output import ReaderGone, remark, result, silence
from eyas.errors import EyasError, UsageError

if TYPE_CHECKING:
    from typer.exceptions import TyperException

TRACEBACK = "EYAS_TRACEBACK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What went wrong and what to type next; `code` is the exit code."""

    kind: str
    message: str
    hint: str | None
    code: int = 2
    error: BaseException | None = None


def failure_of(error: Exception) -> Failure:
    """The failure that `error` is: a sentence for ours, a request to report for any other."""
    if isinstance(error, EyasError):
        return Failure(
            kind=type(error).__name__, message=error.message, hint=error.hint, error=error
        )
    return Failure(
        kind="InternalError",
        message=f"eyas failed: {type(error).__name__}: {error}".splitlines()[0],
        hint=f"set {TRACEBACK}=1 to see the traceback, and report it",
        error=error,
    )


def of_usage(error: TyperException) -> Failure:
    """The failure of a command line that could not be parsed."""
    context = getattr(error, "ctx", None)
    command = "eyas" if context is None else context.command_path
    message = error.format_message().strip().rstrip(".")
    return Failure(kind="UsageError", message=message, hint=f"see: {command} --help")


def tell(failure: Failure, argv: Sequence[str]) -> int:
    """Writes `failure` where it belongs, and returns its exit code.

    One line on stderr; where a format for programs was asked for, also one document on stdout, so
    that what is there parses.
    """
    if failure.error is not None and os.environ.get(TRACEBACK):
        import traceback

        remark("".join(traceback.format_exception(failure.error)))
    _write_document(failure, format_of(argv))
    if failure.message:
        hint = "" if failure.hint is None else f"; {failure.hint}"
        remark(f"error: {failure.message}{hint}\n")
    return failure.code


def format_of(argv: Sequence[str]) -> str | None:
    """The format that a command line asks for last, be it one that cannot be parsed."""
    chosen = None
    for word, following in pairwise([*argv, ""]):
        if word == "--format":
            chosen = following
        elif word.startswith("--format="):
            chosen = word.partition("=")[2]
    return chosen


def _write_document(failure: Failure, form: str | None) -> None:
    if form is None:
        return
    from eyas.checks import ErrorText
    from eyas.checks.render import render_error

    text = ErrorText(kind=failure.kind, message=failure.message, hint=failure.hint)
    document = render_error(text, form)
    if document is None:
        return
    try:
        result(document)
    except (ReaderGone, UsageError):
        silence(sys.stdout)  # stderr still says it, and the exit code is the failure's
