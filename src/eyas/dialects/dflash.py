"""The dialect of z-lab's DFlash: flat, with a ``dflash_config``, embedding and head the target's.

ModelOpt exports the same form (modelopt/torch/export/plugins/hf_spec_export.py, 0.47.0). Layer ids
count states after a layer; block_size is at the top or in the section.
"""

from __future__ import annotations

from eyas.checkpoint import Checkpoint
from eyas.dialects import block, flat
from eyas.dialects.keys import architectures
from eyas.spec import DraftSpec

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
    return block.read_nested(checkpoint, whose="z-lab's DFlashDraftModel")
