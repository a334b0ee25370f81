"""Reading EAGLE-3 from a flat config, which most producers write: one object, one decoder layer.

The layer ids have a key and a meaning of their own with each producer; of several the first holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from eyas.checkpoint import Checkpoint
from eyas.dialects.eagle3 import Source, read_eagle3
from eyas.dialects.keys import Keys
from eyas.dialects.names import roles_of
from eyas.dialects.tensors import Tensors
from eyas.dialects.unread import DRAFTER_KEYS, LAYER_KEYS, PARALLEL_KEYS
from eyas.errors import ConversionError
from eyas.spec import Boundaries, DefaultBoundaries, DraftSpec, Eagle3Spec, Fact, assumed

IDS = "eagle_aux_hidden_state_layer_ids"
SECTION = "eagle_config"
# (section, key, what to add): the first that is there holds.
ID_KEYS = (
    (SECTION, IDS, 1),  # states after a layer: SpecForge 0.2.0, ModelOpt 0.47.0
    ("", IDS, 0),  # boundaries: speculators' key, as flattened files keep it
    ("", "aux_hidden_states_layer_ids", 1),  # AngelSlim 0.5.0
    ("", "target_layer_ids", 1),  # DeepSpec afdfa7c
)
KEYS: Mapping[str, frozenset[str]] = {
    "": LAYER_KEYS
    | DRAFTER_KEYS
    | PARALLEL_KEYS
    | {key for section, key, _ in ID_KEYS if not section},
    SECTION: DRAFTER_KEYS | {IDS},
}


def flat_roles(checkpoint: Checkpoint) -> Mapping[str, str]:
    """Tensor name → role."""
    return roles_of(checkpoint.tensors)


def flat_keys(checkpoint: Checkpoint) -> Mapping[str, frozenset[str]]:
    """What reading a flat config looks at."""
    return KEYS


def no_keys(checkpoint: Checkpoint) -> Mapping[str, frozenset[str]]:
    """Nothing: the drafter is known by name alone, or its config is none of Hugging Face's."""
    return {}


def no_roles(checkpoint: Checkpoint) -> Mapping[str, str]:
    """None: what the tensors are is not known."""
    return {}


def has_eagle3_tensors(checkpoint: Checkpoint) -> str | None:
    """The two tensors that only an EAGLE-3 drafter has, in words; None where they are not there."""
    found = {role: tensor for tensor, role in flat_roles(checkpoint).items()}
    norm = found.get("layers.0.hidden_norm.weight")
    if norm is not None and ("fc.weight" in found or "d2t" in found):
        return f"{norm} and {found.get('fc.weight') or found['d2t']}"
    return None


def read_flat(
    checkpoint: Checkpoint,
    *,
    whose: str,
    theta_whose: str | None = None,
    boundaries: Fact[Boundaries] | None = None,
    target_key: str | None = None,
) -> Eagle3Spec:
    """The drafter that a flat config describes; `whose` code has the defaults.

    `theta_whose` code has that of RoPE, where it is another. `boundaries` are given where the
    producer means something else by the ids, `target_key` where it names the target.
    """
    top = Keys(checkpoint.config, checkpoint.config_file)
    return read_eagle3(
        Source(
            tensors=Tensors.of(checkpoint, flat_roles(checkpoint)),
            layer=top,
            flags=(top.section(SECTION), top),
            boundaries=boundaries or flat_boundaries(top, whose=whose),
            target_name=None if target_key is None else top.text(target_key),
            whose=whose,
            norm_before_residual_whose=whose,
            rope_theta=10000.0,
            rope_theta_whose=theta_whose or whose,
        )
    )


def flat_boundaries(top: Keys, *, whose: str) -> Fact[Boundaries]:
    """The captured boundaries, from the first key of ID_KEYS that is there."""
    for section, key, shift in ID_KEYS:
        ids = (top.section(section) if section else top).integers(key)
        if ids is not None and ids.value:
            boundaries = tuple(i + shift for i in ids.value)
            return Fact(value=boundaries, origin=ids.origin, key=ids.key)
    return assumed(DefaultBoundaries(), top.place(f"{SECTION}.{IDS}"), whose=whose)


def unwritten(
    spec: DraftSpec, roles_present: Collection[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Always raises ConversionError: for dialects that are read and not written."""
    raise ConversionError(
        "this is a dialect that eyas reads and does not write",
        hint="name another dialect, or an engine",
    )
