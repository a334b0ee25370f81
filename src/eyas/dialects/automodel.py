"""The dialect of NVIDIA's NeMo Automodel: flat, with ``model.`` before all but the head.

The class is ``LlamaEagle3DraftModel``; the head, the maps and the mask state have no prefix. A
P-EAGLE drafter is one whose config has parallel_drafting
(components/speculative/eagle/draft_llama.py at 04cc1f8).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from eyas.checkpoint import Checkpoint
from eyas.dialects.dialect import Maps
from eyas.dialects.flat import flat_keys, has_eagle3_tensors, read_flat
from eyas.dialects.keys import architectures
from eyas.dialects.parallel import (
    MASK,
    drafts_in_parallel,
    in_parallel,
    parallel_keys,
    require_mask_state,
    with_mask_state,
)
from eyas.dialects.reach import OWN, Reach, require_within
from eyas.dialects.rope_reach import LLAMA3, RopeReach
from eyas.dialects.stating import dtype_key, layer_keys, require_eagle3, tensor_names
from eyas.spec import DraftSpec, Feedback, LaterNorm, PEagleSpec

name = "automodel"
keys = flat_keys
maps: Maps = "d2t+t2d"
# set_vocab_mapping takes the ids in any order. Whether its trainer takes the target's logits by
# them or by t2d was not read; ascending ids are right either way.
sorted_map = True

_WHOSE = "Automodel's LlamaEagle3DraftModel"
_CLASS = "LlamaEagle3DraftModel"
_REACH = Reach(
    dialect=name,
    code=_WHOSE,
    maps=maps,
    equal_map="none",  # has_vocab_compression
    layer_ids=None,
    ascending=True,
    counts=(3,),
    target_width=True,
    embedding=OWN,
    head=OWN,
    bias="qkvo",
    qk_norm=False,
    latent=False,
    later_norm=None,
    norm_before_residual=False,
    norm_output=True,
    input_norm=False,
    fc_norm=True,
    # components/models/llama/rope_utils.py takes every kind but these two for llama3
    rope=RopeReach(numbers={"default": frozenset(), "llama3": LLAMA3}),
)
_PARALLEL = replace(_REACH, later_norm=LaterNorm.INPUT_LAYERNORM)
_OUTSIDE = ("lm_head.weight", "d2t", "t2d", MASK)


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


def write(
    spec: DraftSpec, roles_present: Collection[str], *, dtype: str | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """A config for Automodel, and role → tensor name; P-EAGLE has parallel_drafting.

    Raises ConversionError for a fact that Automodel cannot state.
    """
    parallel = spec if isinstance(spec, PEagleSpec) else None
    drafter = require_eagle3(spec if parallel is None else parallel.drafter, name)
    own = set(roles_present)
    if parallel is not None:
        require_mask_state(parallel, roles_present, _WHOSE)
        own -= {MASK}
    fused = require_within(drafter, own, _REACH if parallel is None else _PARALLEL)
    config: dict[str, Any] = {
        "architectures": [_CLASS],
        "model_type": "llama",
        **layer_keys(drafter),
        "draft_vocab_size": drafter.draft_vocab_size.value,
        "fc_norm": fused.fc_norm.value,
        "norm_output": drafter.feedback.value is Feedback.POST_NORM,
        **dtype_key(dtype),
    }
    if drafter.target_hidden_size.value != drafter.hidden_size.value:
        config["target_hidden_size"] = drafter.target_hidden_size.value
    if parallel is not None:
        config |= {"parallel_drafting": True, **parallel_keys(parallel)}

    def rename(role: str) -> str:
        return role if role in _OUTSIDE else f"model.{role}"

    return config, tensor_names(roles_present, maps, rename)
