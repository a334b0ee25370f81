"""Native multi-token-prediction layers, which a target brings with it.

Qwen3.5 and DeepSeek-V4 name them ``mtp.*``, MiMo ``model.mtp_layers.*``; DeepSeek-V3 and GLM append
them to the decoder layers, each with an eh_proj, an enorm and an hnorm.
"""

from __future__ import annotations

import re

from eyas.checkpoint import Checkpoint
from eyas.dialects.flat import no_keys, no_roles, unwritten
from eyas.dialects.keys import architectures
from eyas.spec import DraftSpec, Recognised

name = "mtp"
keys = no_keys
roles = no_roles
write = unwritten

_CLASS = re.compile(r".*MTP(Model|ForCausalLM)?")


def recognise(checkpoint: Checkpoint) -> str | None:
    """A tensor that only such a layer has, or a class or type of that name."""
    if checkpoint.config.get("speculators_model_type") == "mtp":
        return f"{checkpoint.config_file} names the speculators type mtp"
    for architecture in architectures(checkpoint.config):
        if _CLASS.fullmatch(architecture):
            return f"{checkpoint.config_file} names {architecture}"
    found = next((name for name in checkpoint.tensors if _is_part(name)), None)
    if found is None:
        return None
    alone = all(_is_part(name) for name in checkpoint.tensors)
    return f"it has {found}" + ("" if alone else " beside the target's own tensors")


def read(checkpoint: Checkpoint) -> DraftSpec:
    """The name, and why it is that one."""
    return Recognised(
        name="DSpark inside the target" if _has_markov(checkpoint) else "MTP",
        why=recognise(checkpoint) or "nothing names it",
        lacks="eyas reads no multi-token-prediction layers; an engine serves them with the target",
    )


def _is_part(name: str) -> bool:
    dotted = f".{name}"
    return ".mtp." in dotted or ".mtp_layers." in dotted or name.endswith(".eh_proj.weight")


def _has_markov(checkpoint: Checkpoint) -> bool:
    return any("markov_head." in name for name in checkpoint.tensors)
