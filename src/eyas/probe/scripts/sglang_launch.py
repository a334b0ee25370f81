"""What SGLang's own argument parser understands of launch lines.

    python sglang_launch.py LINES.json OUT.json

LINES.json is a list of launch lines as lists of words, from ``python -m sglang.launch_server`` or
``sglang serve`` on, environment variables first. A model path must lead to a config.json. OUT.json
holds for each either what it raised or ended with, or every launch argument that differs from the
parser's own default.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import sglang_world

_COMMANDS = (("python", "-m", "sglang.launch_server"), ("sglang", "serve"))


def understood(words: list[str]) -> dict[str, Any]:
    """What the parser and the checks after it make of a launch line."""
    from sglang.srt.server_args import ServerArgs, prepare_server_args

    variables, arguments = split(words)
    with _environment(variables):
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                parser = ArgumentParser()
                ServerArgs.add_cli_args(parser)
                raw = vars(parser.parse_args(arguments))
                defaults = vars(parser.parse_args(["--model-path", ""]))
                settled = prepare_server_args([*arguments, "--device", "cpu"])
                sglang_world.publish(settled)
        except SystemExit:
            last = said.getvalue().strip().splitlines()
            return {"error": {"type": "SystemExit", "message": last[-1] if last else ""}}
        except Exception as error:  # noqa: BLE001 - whatever the parser raises is its answer
            return {"error": {"type": type(error).__name__, "message": str(error)[:1000]}}
    given = {k: v for k, v in raw.items() if v != defaults.get(k)}
    return {"error": None, "given": given, "variables": variables}


def split(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Environment variables, and the arguments behind the command."""
    variables: dict[str, str] = {}
    rest = list(words)
    while rest and "=" in rest[0] and not rest[0].startswith("-"):
        name, _, value = rest.pop(0).partition("=")
        variables[name] = value
    for command in _COMMANDS:
        if tuple(rest[: len(command)]) == command:
            return variables, rest[len(command) :]
    raise ValueError(f"{' '.join(words[:3])} is not how SGLang is launched")


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Any:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def main(arguments: list[str]) -> int:
    """Answers every line."""
    lines = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    version = sglang_world.import_engine()
    answers = [understood(line) for line in lines]
    record = {"engine": "sglang", "version": version, "lines": answers}
    Path(arguments[1]).write_text(json.dumps(record, default=str) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
