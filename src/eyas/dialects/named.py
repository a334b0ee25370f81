"""Drafters that eyas knows by name alone: it says what they are, and computes nothing with them."""

from __future__ import annotations

from collections.abc import Mapping

from eyas.checkpoint import Checkpoint
from eyas.dialects.flat import SECTION, no_keys, no_roles, unwritten
from eyas.dialects.keys import architectures
from eyas.spec import DraftSpec, Recognised

name = "named"
keys = no_keys
roles = no_roles
write = unwritten

# What a class name or a speculators type begins with, in lower case without its model family.
_KINDS = {
    "dflash2": "DFlash 2",
    "dflare": "DFlare",
    "dfly": "DFly",
    "domino": "Domino",
    "eagle4": "EAGLE-4",
    "eaglellama": "EAGLE-1",
    "eaglemistral": "EAGLE-1",
    "eagleqwen2": "EAGLE-1",
    "hydra": "Hydra",
    "jetspec": "JetSpec",
    "lilicorr": "LiLiCorr",
    "medusa": "Medusa",
    "mlpspeculator": "MLPSpeculator",
    "pard": "PARD",
    "xpress": "XPress",
}
_FAMILIES = ("qwen3", "llama", "gemma4", "deepseekv4")
# What a tensor begins with that only one kind has.
_TENSORS = {
    "prefix_gru.": "Domino",
    "logit_head.prefix_gru.": "Domino",
    "parallel_draft_heads.": "EAGLE with ModelOpt's parallel heads",
    "medusa_heads.": "Medusa",
}
# A section, a key in it, and the kind that has more there than this number.
_KEYS = (
    (SECTION, "parallel_draft_step", 1, _TENSORS["parallel_draft_heads."]),
    ("dflash_config", "conv_kernel_size", 0, "DFlash 2"),
    ("dflash_config", "selector_rank", 0, "DFlash 2"),
)


def recognise(checkpoint: Checkpoint) -> str | None:
    """A class name, a speculators type, a tensor or a key of another kind of drafter."""
    found = _kind(checkpoint)
    return None if found is None else found[1]


def read(checkpoint: Checkpoint) -> DraftSpec:
    """The name, and why it is that one."""
    kind, why = _kind(checkpoint) or ("unknown", "nothing names it")
    return Recognised(name=kind, why=why, lacks=f"eyas does not compute with {kind} drafters")


def _kind(checkpoint: Checkpoint) -> tuple[str, str] | None:
    return _declared(checkpoint) or _shown(checkpoint)


def _declared(checkpoint: Checkpoint) -> tuple[str, str] | None:
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
    return None


def _shown(checkpoint: Checkpoint) -> tuple[str, str] | None:
    for tensor in checkpoint.tensors:
        for prefix, kind in _TENSORS.items():
            if tensor.startswith(prefix):
                return kind, f"it has {tensor}"
    for section, key, most, kind in _KEYS:
        table = checkpoint.config.get(section)
        value = table.get(key) if isinstance(table, Mapping) else None
        if isinstance(value, int) and value > most:
            return kind, f"{checkpoint.config_file} :: {section}.{key} is {value}"
    return None
