"""The dialect of NVIDIA's Model-Optimizer: flat, with an ``eagle_config`` from its template.

Its Hugging Face export calls the layers ``layers.{i}.*`` and stores neither an embedding nor t2d; a
layer after the first has an input_layernorm. Its Megatron export calls them ``midlayer.*`` or
``midlayer.{i}.*``, stores the embedding, and a layer after the first has a hidden_norm
(modelopt/torch/export/plugins/hf_spec_export.py and mcore_llama.py, 0.47.0). d2t is in the order of
frequency. Where it trained with plain RoPE it exports a yarn scaling, for use beyond that length.
"""

from __future__ import annotations

from collections.abc import Mapping

from eyas.checkpoint import Checkpoint
from eyas.dialects.flat import (
    SECTION,
    flat_keys,
    flat_roles,
    has_eagle3_tensors,
    read_flat,
    unwritten,
)
from eyas.spec import Eagle3Spec

name = "modelopt"
keys = flat_keys
roles = flat_roles
write = unwritten

_WHOSE = "ModelOpt 0.47.0's EagleModule"
# What only its templates write into eagle_config.
_FLAGS = (
    "use_input_layernorm_in_first_layer",
    "use_last_layernorm",
    "use_mtp_layernorm",
    "next_layer_regular",
    "parallel_draft_step",
    "parallel_draft_heads_num_layers",
)


def recognise(checkpoint: Checkpoint) -> str | None:
    """The keys of its template in eagle_config, over EAGLE-3's tensors."""
    nested = checkpoint.config.get(SECTION)
    flag = next((f for f in _FLAGS if isinstance(nested, Mapping) and f in nested), None)
    tensors = None if flag is None else has_eagle3_tensors(checkpoint)
    if tensors is None:
        return None
    megatron = any(name.startswith("midlayer.") for name in checkpoint.tensors)
    form = "Megatron" if megatron else "Hugging Face"
    return f"{checkpoint.config_file} has {SECTION}.{flag}, and it has {tensors}: the {form} export"


def read(checkpoint: Checkpoint) -> Eagle3Spec:
    """The drafter as ModelOpt computes it."""
    return read_flat(checkpoint, whose=_WHOSE)
