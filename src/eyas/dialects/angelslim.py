"""The dialect of Tencent's AngelSlim: flat, ``midlayer.*``, class ``Eagle3LlamaForCausalLM``.

Layer ids are in ``aux_hidden_states_layer_ids`` and count states after a layer
(compressor/speculative/train/models/draft/llama_eagle3.py, 0.5.0). That file builds the rotary
embedding without the config's rope_theta, at 040c6b7 as in 0.5.0 (:257-285), so that a drafter was
trained with 10000 whatever it declares; its inference, which is what reads one, takes rope_theta
(compressor/speculative/inference/models/eagle3/draft/llama3_eagle3.py:236-242).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from eyas.checkpoint import Checkpoint
from eyas.dialects.dialect import Maps
from eyas.dialects.flat import flat_keys, flat_roles, has_eagle3_tensors, read_flat
from eyas.dialects.keys import architectures
from eyas.dialects.names import named
from eyas.dialects.reach import EITHER, OWN, Reach, require_within
from eyas.dialects.rope_reach import FACTOR_ALONE, type_and_factor
from eyas.dialects.stating import after_layers, dtype_key, layer_keys, require_eagle3, tensor_names
from eyas.spec import DraftSpec, Eagle3Spec

name = "angelslim"
keys = flat_keys
roles = flat_roles
maps: Maps = "d2t+t2d"
sorted_map = True  # target_logits[..., t2d] (train/trainer/eagle3_trainer.py:275)

_WHOSE = "AngelSlim 0.5.0's Eagle3LlamaForCausalLM"
_IDS = "aux_hidden_states_layer_ids"
_REACH = Reach(
    dialect=name,
    code=_WHOSE,
    maps=maps,
    equal_map="identity",  # inference/models/eagle3/eagle3_model.py:380-382 deletes it
    layer_ids=_IDS,
    ascending=False,
    counts=(3,),  # llama_eagle3.py:555
    target_width=False,  # the same line, though its inference could
    embedding=EITHER,  # ZeRO-3 leaves it out, and inference loads a stored one over the target's
    head=OWN,
    bias="none",
    qk_norm=False,
    latent=False,
    later_norm=None,
    norm_before_residual=False,
    norm_output=False,
    input_norm=False,
    fc_norm=False,
    rope=FACTOR_ALONE,
)


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


def write(
    spec: DraftSpec, roles_present: Collection[str], *, dtype: str | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """A config for AngelSlim, and role → tensor name.

    Raises ConversionError for a fact that AngelSlim cannot state.
    """
    spec = require_eagle3(spec, name)
    fused = require_within(spec, roles_present, _REACH)
    config: dict[str, Any] = {
        "architectures": ["Eagle3LlamaForCausalLM"],
        "model_type": "llama",
        **layer_keys(spec),
        "draft_vocab_size": spec.draft_vocab_size.value,
        **dtype_key(dtype),
    }
    del config["rope_parameters"]
    config |= type_and_factor(spec.rope.value)
    ids = after_layers(fused.boundaries.value)
    if ids is not None:
        config[_IDS] = ids
    return config, tensor_names(roles_present, maps, lambda role: named(role, "midlayer."))
