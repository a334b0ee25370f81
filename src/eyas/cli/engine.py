"""eyas engine: the engines that are installed to be asked themselves."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from eyas.cli.options import QuietOption
from eyas.cli.output import hint, result
from eyas.errors import UsageError


class Action(StrEnum):
    """What is done."""

    INSTALL = "install"
    LIST = "list"


def engine(
    action: Annotated[Action, typer.Argument(help="Install an engine, or list what is there.")],
    name: Annotated[
        str | None,
        typer.Argument(metavar="[ENGINE]", show_default=False, help="vllm, sglang or llamacpp."),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="VERSION", help="The one that eyas was tried with."),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Install an engine beside eyas, for `eyas probe` to ask it, or list what is installed.

    eyas engine install vllm

    eyas engine install sglang --version 0.5.11

    eyas engine list

    Each version gets a Python environment of its own in eyas's cache (EYAS_CACHE, else the
    platform's cache folder): for CUDA where there is a device, else for the CPU. A second call
    finds it, and a call after a kill goes on with it.
    """
    if action is Action.LIST:
        _list()
        return
    if name is None:
        raise UsageError("no engine is named", hint="write for example: eyas engine install vllm")
    from eyas.cli.progress import steps
    from eyas.probe.environment import install

    with steps(quiet=quiet) as say:
        there = install(name, version, say)
    result(f"{there.engine} {there.version}  {there.directory}\n")
    hint(f"eyas probe {there.engine}@{there.version} DRAFT --target TARGET")


def _list() -> None:
    from eyas.checks.render.columns import columns
    from eyas.probe.environment import installed

    found = installed()
    rows = [[e.engine, e.version, f"{e.size / 1e9:.1f} GB", str(e.directory)] for e in found]
    result(f"{columns(rows, indent='')}\n" if rows else "no engine is installed\n")
    hint("eyas probe ENGINE DRAFT --target TARGET" if found else "eyas engine install vllm")
