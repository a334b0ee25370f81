"""Drafters that no dialect knows, and that call themselves drafters."""

from __future__ import annotations

import re

from eyas.checkpoint import Checkpoint
from eyas.dialects.flat import no_keys, no_roles, unwritten
from eyas.dialects.keys import architectures
from eyas.spec import DraftSpec, Recognised

name = "newer"
keys = no_keys
roles = no_roles
write = unwritten

_WORDS = re.compile(r"eagle|draft|speculat|assistant|dspark|dflash", re.IGNORECASE)


def recognise(checkpoint: Checkpoint) -> str | None:
    """A class name that says draft, speculator, assistant or the name of a known method."""
    for architecture in architectures(checkpoint.config):
        if architecture.isidentifier() and _WORDS.search(architecture):
            return f"{checkpoint.config_file} names {architecture}"
    return None


def read(checkpoint: Checkpoint) -> DraftSpec:
    """The class name, and that eyas does not know it."""
    classes = architectures(checkpoint.config)
    known = next((one for one in classes if _WORDS.search(one)), "unknown")
    return Recognised(
        name=known,
        why=recognise(checkpoint) or "nothing names it",
        lacks="eyas does not know this class, which may be newer than eyas",
    )
