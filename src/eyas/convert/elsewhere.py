"""Elsewhere: what to type where one engine cannot be told what was trained."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from eyas.checkpoint import SINGLE_FILES
from eyas.checkpoint.place import GGUF_SUFFIX
from eyas.convert.wishes import Wishes
from eyas.engines import EngineRef
from eyas.engines.catalogue import engine_named

if TYPE_CHECKING:
    from eyas.checkpoint import TargetFacts


def ask(location: str) -> str:
    """The advice where no engine is known that could be told: to look for one."""
    draft = quote(location)
    return f"serve it on another engine; ask: eyas check {draft} --engine ENGINE@VERSION"


def instead(
    location: str, out: str, engine: EngineRef, target: TargetFacts | None, wishes: Wishes
) -> str:
    """The command that writes the drafter at `location` for `engine`, as wished, to `out`.

    `out` gets another name where what `engine` reads cannot have this one.
    """
    words = ["eyas", "convert", location, _fitting(out, engine), "--to", str(engine)]
    if target is not None:
        words += ["--target", target.location]
    return " ".join(quote(word) for word in (*words, *wishes.options()))


def _fitting(out: str, engine: EngineRef) -> str:
    """`out` where a file has a file's name and a directory a directory's, else a name beside it."""
    known = engine_named(engine.name)
    ending = next((end for end in SINGLE_FILES if out.endswith(end)), "")
    if known is not None and known.reads_gguf:
        plain = out.removesuffix(ending).rstrip("/")
        return f"{plain if plain.strip('.') else f'{plain}/draft'}{GGUF_SUFFIX}"
    # Without its ending it may well be the name of the drafter's own directory.
    return f"{out.removesuffix(ending)}-{engine.name}" if ending else out
