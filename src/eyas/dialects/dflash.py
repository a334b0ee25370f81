"""The dialect of z-lab's DFlash: flat, with a ``dflash_config``, embedding and head the target's.

ModelOpt exports the same form (modelopt/torch/export/plugins/hf_spec_export.py, 0.47.0). Layer ids
count states after a layer and must be there; block_size is at the top or in the section, and 16
where it is in neither (dflash/model.py at 1012959).
"""

from __future__ import annotations

from eyas.checkpoint import Checkpoint
from eyas.dialects import block, flat
from eyas.dialects.keys import Keys, architectures, or_absent
from eyas.dialects.tensors import Tensors
from eyas.spec import DFlashSpec, DraftSpec, Fact, Recognised, absent, assumed

name = "dflash"
keys = block.keys
roles = block.roles
write = flat.unwritten

_CLASS = "DFlashDraftModel"


def recognise(checkpoint: Checkpoint) -> str | None:
    """Its class, or a block drafter's tensors with a dflash_config."""
    if _CLASS in architectures(checkpoint.config):
        return f"{checkpoint.config_file} names {_CLASS}"
    if block.SECTION in checkpoint.config and block.shows_block(checkpoint):
        return f"it has hidden_norm.weight beside fc, and {checkpoint.config_file} {block.SECTION}"
    return None


def read(checkpoint: Checkpoint) -> DraftSpec:
    """The drafter as z-lab's code computes it."""
    return read_as(checkpoint, whose="z-lab's DFlashDraftModel", usual_block=16)


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
