"""Which dialect a checkpoint is written in, and which dialects are there to be written."""

from __future__ import annotations

from collections.abc import Mapping

from eyas.checkpoint import Checkpoint
from eyas.dialects import (
    angelslim,
    assistant,
    automodel,
    deepspec,
    dflash,
    eagle,
    gguf,
    modelopt,
    mtp,
    named,
    newer,
    specforge,
    speculators,
    torchspec,
)
from eyas.dialects.dialect import Dialect, Writable
from eyas.dialects.unread import unread
from eyas.errors import NotADrafterError, UsageError
from eyas.spec import DraftSpec

# The first that recognises a checkpoint has it. A format, a kind that is known by name and a nested
# config are decisive. Of the flat forms those come first whose marks no other has; SpecForge's is
# what remains of them. Whole models, and names that sound like a drafter's, come last.
DIALECTS: tuple[Dialect, ...] = (
    gguf,
    mtp,
    named,
    speculators,
    deepspec,
    automodel,
    torchspec,
    angelslim,
    modelopt,
    eagle,
    specforge,
    dflash,
    assistant,
    newer,
)

_WRITABLE: tuple[Writable, ...] = (
    specforge,
    speculators,
    eagle,
    angelslim,
    modelopt,
    torchspec,
    automodel,
    deepspec,
    dflash,
    gguf,
)
# The dialects that are written too, by name, in the order in which a reader is told of them.
WRITABLE: Mapping[str, Writable] = {dialect.name: dialect for dialect in _WRITABLE}


def named_dialect(name: str) -> Writable:
    """The dialect called `name`; raises UsageError when eyas writes none of that name."""
    if name not in WRITABLE:
        raise UsageError(
            f"{name!r} is no dialect that eyas writes", hint=f"name one of {', '.join(WRITABLE)}"
        )
    return WRITABLE[name]


def recognise(checkpoint: Checkpoint) -> Dialect:
    """The dialect of `checkpoint`; raises NotADrafterError when it is none's."""
    for dialect in DIALECTS:
        if dialect.recognise(checkpoint) is not None:
            return dialect
    raise NotADrafterError(
        f"{checkpoint.location} is no drafter that eyas knows: it looks like"
        f" {_appearance(checkpoint)}",
        hint="give the drafter's directory; a target goes after --target",
    )


def read(checkpoint: Checkpoint) -> tuple[Dialect, DraftSpec]:
    """The dialect of `checkpoint` and the drafter as trained."""
    dialect = recognise(checkpoint)
    return dialect, dialect.read(checkpoint)


def unread_keys(checkpoint: Checkpoint) -> tuple[str, ...]:
    """The keys that could change the arithmetic and that its dialect does not read.

    Each is a text such as ``config.json :: sliding_window is 4096``.
    """
    return tuple(unread(checkpoint, recognise(checkpoint).keys(checkpoint)))


def _appearance(checkpoint: Checkpoint) -> str:
    architectures = checkpoint.config.get("architectures")
    layers = checkpoint.config.get("num_hidden_layers")
    lacks = "" if any("fc." in name for name in checkpoint.tensors) else " and no fusion layer (fc)"
    if isinstance(architectures, list) and architectures and isinstance(architectures[0], str):
        what = f"a {architectures[0][:80]!r} model"
    else:
        what = "a model without architectures in its config"
    if isinstance(layers, int):
        what += f" of {layers} layers"
    return f"{what} with {len(checkpoint.tensors)} tensors{lacks}"
