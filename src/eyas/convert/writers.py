"""Writers: the ways in which a drafter can be written, each a dialect with its choices made."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from eyas.checkpoint import Format
from eyas.dialects import (
    WRITABLE,
    deepspec,
    dflash,
    gguf,
    specforge,
    speculators,
    torchspec,
)
from eyas.spec import DraftSpec

Written = tuple[dict[str, Any], dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """A dialect and how it is written: `write` takes a spec, the roles present and a dtype.

    `deep` says that it takes the depth of the target too.
    """

    dialect: str
    manner: str
    write: Callable[..., Written]
    form: Format = Format.SAFETENSORS
    deep: bool = False

    @property
    def masks(self) -> bool:
        """Whether t2d is stored beside d2t."""
        return WRITABLE[self.dialect].maps == "d2t+t2d"

    def __call__(
        self,
        spec: DraftSpec,
        roles: Collection[str],
        *,
        dtype: str | None,
        target_layers: int | None,
    ) -> Written:
        """A config, and role → tensor name; ConversionError for what cannot be stated so."""
        if self.deep:
            return self.write(spec, roles, dtype=dtype, target_layers=target_layers)
        return self.write(spec, roles, dtype=dtype)


_flat = partial(specforge.write, null_vocab=True)

# What is tried for an engine. Readers of the flat form differ in the name of the layer and in the
# key of the layer ids; the first manner that an engine reads as trained is taken.
FOR_ENGINES: tuple[Writer, ...] = (
    Writer(
        dialect=specforge.name,
        manner="midlayer.*",
        write=partial(_flat, layer_prefix="midlayer.", ids="nested"),
    ),
    Writer(
        dialect=specforge.name,
        manner="layers.*",
        write=partial(_flat, layer_prefix="layers.0.", ids="nested"),
    ),
    Writer(
        dialect=specforge.name,
        manner="midlayer.*, layer ids at the top level",
        write=partial(_flat, layer_prefix="midlayer.", ids="top"),
    ),
    Writer(
        dialect=specforge.name,
        manner="layers.*, layer ids at the top level",
        write=partial(specforge.write, layer_prefix="layers.0.", ids="top"),
    ),
    Writer(dialect=speculators.name, manner="nested config", write=speculators.write),
    Writer(
        dialect=torchspec.name,
        manner="layers.0.*",
        write=partial(torchspec.write, layer_prefix="layers.0."),
    ),
    Writer(dialect=gguf.name, manner="eagle3", write=gguf.write, form=Format.GGUF, deep=True),
)
_DEEP = {dflash.name, specforge.name, deepspec.name}


def writers_of(dialect: str) -> tuple[Writer, ...]:
    """The ways of writing a drafter for the readers of `dialect`, its producer's own first."""
    module = WRITABLE[dialect]
    others = tuple(writer for writer in FOR_ENGINES if writer.dialect == dialect)
    if dialect == gguf.name:
        return others
    own = Writer(
        dialect=dialect,
        manner="as its producer does",
        write=module.write,
        deep=dialect in _DEEP,
    )
    return (own, *others)
