"""The command line: one thin file for each command."""

from eyas.cli.program import main

__all__ = ["main"]
