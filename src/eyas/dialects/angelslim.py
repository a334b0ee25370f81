"""The dialect of Tencent's AngelSlim: flat, ``midlayer.*``, class ``Eagle3LlamaForCausalLM``.

Layer ids are in ``aux_hidden_states_layer_ids`` and count states after a layer
(compressor/speculative/train/models/draft/llama_eagle3.py, 0.5.0). At 040c6b7 that file builds the
rotary embedding without the config's rope_theta, so that a drafter of that age was trained with
10000 whatever it declares; the files do not tell the version.
"""

from __future__ import annotations

from eyas.checkpoint import Checkpoint
from eyas.dialects.flat import flat_keys, flat_roles, has_eagle3_tensors, read_flat, unwritten
from eyas.dialects.keys import architectures
from eyas.spec import Eagle3Spec

name = "angelslim"
keys = flat_keys
roles = flat_roles
write = unwritten

_WHOSE = "AngelSlim 0.5.0's Eagle3LlamaForCausalLM"
_IDS = "aux_hidden_states_layer_ids"


def recognise(checkpoint: Checkpoint) -> str | None:
    """Its key of the layer ids, or its class over midlayer.*: vLLM's of that name has layers.*."""
    if checkpoint.config.get(_IDS) is not None and has_eagle3_tensors(checkpoint):
        return f"{checkpoint.config_file} has {_IDS}"
    midlayer = any(name.startswith("midlayer.") for name in checkpoint.tensors)
    if midlayer and "Eagle3LlamaForCausalLM" in architectures(checkpoint.config):
        return f"{checkpoint.config_file} names Eagle3LlamaForCausalLM, and the layer is midlayer.*"
    return None


def read(checkpoint: Checkpoint) -> Eagle3Spec:
    """The drafter as AngelSlim computes it."""
    return read_flat(checkpoint, whose=_WHOSE)
