"""The dialect of NVIDIA's NeMo Automodel: flat, with ``model.`` before all but the head.

The class is ``LlamaEagle3DraftModel``; the head, the maps and the mask state have no prefix. A
P-EAGLE drafter is one whose config has parallel_drafting
(components/speculative/eagle/draft_llama.py at 04cc1f8).
"""

from __future__ import annotations

from collections.abc import Mapping

from eyas.checkpoint import Checkpoint
from eyas.dialects.flat import flat_keys, has_eagle3_tensors, read_flat, unwritten
from eyas.dialects.keys import architectures
from eyas.dialects.parallel import drafts_in_parallel, in_parallel, with_mask_state
from eyas.spec import DraftSpec

name = "automodel"
keys = flat_keys
write = unwritten

_WHOSE = "Automodel's LlamaEagle3DraftModel"
_CLASS = "LlamaEagle3DraftModel"


def recognise(checkpoint: Checkpoint) -> str | None:
    """Its class, or EAGLE-3's tensors under model. with no class that another producer uses."""
    classes = architectures(checkpoint.config)
    if _CLASS in classes:
        return f"{checkpoint.config_file} names {_CLASS}"
    within = {"model.fc.weight", "model.layers.0.hidden_norm.weight"} <= checkpoint.tensors.keys()
    if within and not classes and has_eagle3_tensors(checkpoint):
        return "it has model.fc.weight and model.layers.0.hidden_norm.weight, and no class"
    return None


def roles(checkpoint: Checkpoint) -> Mapping[str, str]:
    """Tensor name → role."""
    return with_mask_state(checkpoint)


def read(checkpoint: Checkpoint) -> DraftSpec:
    """The drafter as Automodel computes it."""
    spec = read_flat(checkpoint, whose=_WHOSE)
    return in_parallel(checkpoint, spec) if drafts_in_parallel(checkpoint) else spec
