"""Writers: the ways in which a drafter can be written, each a dialect with its choices made."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from eyas.checkpoint import Format
from eyas.dialects import specforge, speculators
from eyas.spec import Eagle3Spec

Written = tuple[dict[str, Any], dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """A dialect and how it is written: `write` takes a spec, the roles present and a dtype.

    `masks` says whether t2d is stored beside d2t, `for_engines` whether it is tried for an engine:
    ways that differ in what no engine reads are for their dialect alone.
    """

    dialect: str
    manner: str
    write: Callable[..., Written]
    form: Format = Format.SAFETENSORS
    masks: bool = True
    for_engines: bool = True

    def __call__(self, spec: Eagle3Spec, roles: Collection[str], dtype: str | None) -> Written:
        """A config, and role → tensor name; ConversionError for what cannot be stated so."""
        return self.write(spec, roles, dtype=dtype)


# Readers of the flat form differ in the name of the layer and in the key of the layer ids; the
# first manner that an engine reads as trained is taken.
WRITERS: tuple[Writer, ...] = (
    Writer(
        dialect=specforge.name,
        manner="midlayer.*",
        write=partial(specforge.write, layer_prefix="midlayer.", ids="nested"),
    ),
    Writer(
        dialect=specforge.name,
        manner="layers.*",
        write=partial(specforge.write, layer_prefix="layers.0.", ids="nested"),
    ),
    Writer(
        dialect=specforge.name,
        manner="midlayer.*, layer ids at the top level",
        write=partial(specforge.write, layer_prefix="midlayer.", ids="top"),
    ),
    Writer(dialect=speculators.name, manner="nested config", write=speculators.write),
)
WRITABLE: tuple[str, ...] = tuple(dict.fromkeys(writer.dialect for writer in WRITERS))
