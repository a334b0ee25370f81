"""The program `eyas`: its commands, and what becomes of an error."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import StringIO
from typing import Annotated

import typer
from typer.exceptions import TyperException

from eyas.cli.failure import Failure, failure_of, of_usage, tell
from eyas.cli.output import ReaderGone, remark, result, settle, silence
from eyas.errors import EyasError

# The panel and the name of each command: a module in this package, with a function of its name.
COMMANDS = (
    ("Look", "inspect"),
    ("Look", "landing"),
    ("Look", "check"),
    ("Look", "explain"),
    ("Look", "probe"),
    ("Change", "convert"),
    ("Run", "demo"),
    ("Run", "generate"),
    ("Run", "eval"),
    ("Run", "diagnose"),
    ("Run", "target"),
    ("Run", "engine"),
)
_RUNS_BARE = ("explain", "demo")  # others show their help when they are typed alone

HELP = """
Check, convert, run and measure speculative-decoding drafters.

[bold]Will SGLang compute what I trained?[/bold]

    eyas check ./draft --engine sglang@0.5.10.post1,vllm@0.33.0

[bold]Give it the names and the config that it reads:[/bold]

    eyas convert ./draft ./draft-sglang --to sglang@0.5.10.post1
"""


def application(wanted: str | None = None) -> typer.Typer:
    """The program with the command `wanted` alone, or with all of them where there is no such.

    A command's options take milliseconds to set up, and one command is run.
    """
    app = typer.Typer(
        name="eyas",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=HELP)(_root)
    alone = [named for named in COMMANDS if named[1] == wanted]
    for panel, name in alone or COMMANDS:
        app.command(rich_help_panel=panel, no_args_is_help=name not in _RUNS_BARE)(command(name))
    return app


def command(name: str) -> Callable[..., None]:
    """The function of the command `name`."""
    function: Callable[..., None] = getattr(import_module(f"eyas.cli.{name}"), name)
    return function


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line; returns its exit code and raises nothing.

    0 nothing found, 1 findings, 2 could not judge (every error), 130 interrupted.
    """
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:  # a stop that was asked for cleans up, as ctrl-C does
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.stderr is None:  # closed (2>&-), as is stdout below
        sys.stderr = StringIO()
    if sys.stdout is None:
        remark("error: stdout is closed, and a result would be lost; send it somewhere\n")
        return 2
    try:
        return _run(argv)
    finally:
        settle()


def _run(argv: list[str]) -> int:
    try:
        wanted = argv[0] if argv else None
        code = application(wanted)(args=argv, prog_name="eyas", standalone_mode=False)
    except EyasError as error:
        return tell(failure_of(error), argv)
    except TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help is on the screen already
            return 2
        return tell(of_usage(error), argv)
    except (ReaderGone, BrokenPipeError, SystemExit):  # `| head` has read enough: rich exits
        silence(sys.stdout)
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return tell(Failure(kind="Interrupted", message="interrupted", hint=None, code=130), argv)
    except Exception as error:  # noqa: BLE001 - the last stop: nobody should see a traceback
        return tell(failure_of(error), argv)
    return code if isinstance(code, int) else 0


def _version(wanted: bool) -> None:
    if wanted:
        import eyas

        result(f"eyas {eyas.__version__}\n")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """The options that come before a command."""
