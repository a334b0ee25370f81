"""Drafters that eyas knows by name alone: it says what they are, and computes nothing with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from eyas.checkpoint import Checkpoint
from eyas.dialects.keys import architectures
from eyas.errors import ConversionError
from eyas.spec import DraftSpec, Recognised

name = "named"
keys: Mapping[str, frozenset[str]] = {}  # nothing is read but the kind

# What a class name or a speculators type begins with, in lower case without its model family.
_KINDS = {
    "peagle": "P-EAGLE",
    "dflash2": "DFlash 2",
    "dflash": "DFlash",
    "dspark": "DSpark",
    "domino": "Domino",
    "xpress": "XPress",
    "mtp": "MTP",
    "eagle4": "EAGLE-4",
    "medusa": "Medusa",
    "mlpspeculator": "MLPSpeculator",
}
_FAMILIES = ("qwen3", "llama", "gemma4", "deepseekv4")


def recognise(checkpoint: Checkpoint) -> str | None:
    """A class name or a speculators type of another kind of drafter, or only MTP tensors."""
    found = _kind(checkpoint)
    return None if found is None else found[1]


def read(checkpoint: Checkpoint) -> DraftSpec:
    """The name, and why it is that one."""
    found = _kind(checkpoint)
    kind, why = found if found is not None else ("unknown", "nothing names it")
    return Recognised(name=kind, why=why)


def roles(checkpoint: Checkpoint) -> Mapping[str, str]:
    """None: what the tensors are is not known."""
    return {}


def write(spec: DraftSpec, roles_present: Collection[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Always raises ConversionError."""
    raise ConversionError("a drafter that is known by name alone cannot be written")


def _kind(checkpoint: Checkpoint) -> tuple[str, str] | None:
    declared = checkpoint.config.get("speculators_model_type")
    if isinstance(declared, str) and declared in _KINDS:
        return _KINDS[declared], f"{checkpoint.config_file} names the speculators type {declared}"
    for architecture in architectures(checkpoint.config):
        bare = architecture.lower()
        for family in _FAMILIES:
            bare = bare.removeprefix(family)
        for prefix, kind in _KINDS.items():
            if bare.startswith(prefix):
                return kind, f"{checkpoint.config_file} names {architecture}"
    if checkpoint.tensors and all(tensor.startswith("mtp.") for tensor in checkpoint.tensors):
        return "MTP", "all its tensors are mtp.*"
    return None
