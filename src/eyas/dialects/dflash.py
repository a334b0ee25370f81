"""The dialect of z-lab's DFlash: flat, with a ``dflash_config``, embedding and head the target's.

ModelOpt exports the same form (modelopt/torch/export/plugins/hf_spec_export.py, 0.47.0). Layer ids
count states after a layer and must be there; block_size is at the top or in the section, and 16
where it is in neither (dflash/model.py at 1012959).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from eyas.checkpoint import Checkpoint
from eyas.dialects import block
from eyas.dialects.block_reach import (
    BlockReach,
    block_layer_keys,
    causal_layers,
    require_block,
    require_block_within,
    stated,
)
from eyas.dialects.dialect import Maps
from eyas.dialects.keys import Keys, architectures, or_absent
from eyas.dialects.reach import TARGETS
from eyas.dialects.stating import after_layers, tensor_names
from eyas.dialects.tensors import Tensors
from eyas.spec import DFlashSpec, DraftSpec, Fact, Recognised, absent, assumed

name = "dflash"
keys = block.keys
roles = block.roles
maps: Maps = "none"
sorted_map = False

_CLASS = "DFlashDraftModel"
_USUAL_BLOCK = 16
REACH = BlockReach(
    dialect=name,
    code="z-lab's DFlashDraftModel",
    maps=maps,
    embedding=TARGETS,
    head=TARGETS,
    embeddings_id=False,  # hidden_states[id + 1] (dflash/model.py, extract_context_feature)
    ascending=False,
    target_width=False,
    heads=False,
    sliding=True,
    causal=frozenset({"none", "those that slide", "all"}),  # is_causal is false, absent or true
    usual_block=_USUAL_BLOCK,
)


def recognise(checkpoint: Checkpoint) -> str | None:
    """Its class, or a block drafter's tensors with a dflash_config."""
    if _CLASS in architectures(checkpoint.config):
        return f"{checkpoint.config_file} names {_CLASS}"
    if block.SECTION in checkpoint.config and block.shows_block(checkpoint):
        return f"it has hidden_norm.weight beside fc, and {checkpoint.config_file} {block.SECTION}"
    return None


def read(checkpoint: Checkpoint) -> DraftSpec:
    """The drafter as z-lab's code computes it."""
    return read_as(checkpoint, whose="z-lab's DFlashDraftModel", usual_block=_USUAL_BLOCK)


def read_as(
    checkpoint: Checkpoint,
    *,
    whose: str,
    usual_block: int | None,
    spread: Fact[tuple[int, ...]] | None = None,
) -> DFlashSpec | Recognised:
    """The drafter that a flat config with `dflash_config` describes, as z-lab and SpecForge write.

    `spread` are the boundaries where no ids are stated, if `whose` code has some then. Their ids
    count states after a layer, and in their layers that slide a token of the block sees no later
    one unless `is_causal` says otherwise (dflash/model.py of z-lab/dflash at 1012959;
    specforge/modeling/draft/dflash_mask.py at 0f43ce6).
    """
    top = Keys(checkpoint.config, checkpoint.config_file)
    section = top.section(block.SECTION)
    mode = section.text("attention_mode")
    if mode is not None and mode.value not in ("gqa", "mha"):
        return Recognised(
            name=f"DFlash with {mode.value}",
            why=f"{mode.key} is {mode.value}",
            lacks="eyas computes DFlash with gqa and mha alone",
        )
    tensors = Tensors.of(checkpoint, block.roles(checkpoint))

    def causal(sliding: Fact[frozenset[int]]) -> Fact[frozenset[int]]:
        stated = top.flag("is_causal")
        if stated is None:
            return assumed(sliding.value, top.place("is_causal"), whose=whose)
        depth = tensors.layers()
        every = frozenset(range(depth.value if depth else 0))
        return stated.map(lambda on: every if on else frozenset())

    return block.read_block(
        block.BlockSource(
            tensors=tensors,
            layer=top,
            own=(section, top),
            boundaries=_after(section)
            or _after(top)
            or or_absent(spread, section.place("target_layer_ids")),
            causal=causal,
            anchored=tensors.has(block.MARKOV),
            usual_block=usual_block,
            target_name=absent(top.place("target_model_name_or_path")),
            whose=whose,
        )
    )


def _after(keys: Keys) -> Fact[tuple[int, ...] | None] | None:
    """The boundaries that `target_layer_ids` in `keys` state: states after a layer."""
    ids = keys.integers("target_layer_ids")
    return None if ids is None else ids.map(lambda ids: tuple(i + 1 for i in ids))


def write(
    spec: DraftSpec,
    roles_present: Collection[str],
    *,
    dtype: str | None = None,
    target_layers: int | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """A config for z-lab's code, and role → tensor name.

    `target_layers` is the depth of the target, which its files state and no drafter depends
    on. Raises ConversionError for a fact that the dialect cannot state.
    """
    spec = require_block(spec, name)
    require_block_within(spec, roles_present, REACH, anchored=False)
    config = {
        "architectures": [_CLASS],
        **flat_block(spec, dtype, target_layers),
        block.SECTION: section_keys(spec),
    }
    return config, tensor_names(roles_present, maps, lambda role: role)


def flat_block(spec: DFlashSpec, dtype: str | None, target_layers: int | None) -> dict[str, Any]:
    """The keys at the top, which SpecForge has too."""
    keys = {
        **block_layer_keys(spec, dtype),
        **stated(block_size=spec.block_size.value, num_target_layers=target_layers),
    }
    causal = causal_layers(spec)
    if causal != "those that slide":
        keys["is_causal"] = causal == "all"
    return keys


def section_keys(spec: DFlashSpec) -> dict[str, Any]:
    """The keys of the section, which SpecForge has too: ids of states after a layer."""
    ids = after_layers(spec.boundaries.value)
    return stated(mask_token_id=spec.mask_token_id.value, target_layer_ids=ids)
