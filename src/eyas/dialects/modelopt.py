"""The dialect of NVIDIA's Model-Optimizer: flat, with an ``eagle_config`` from its template.

Its Hugging Face export calls the layers ``layers.{i}.*`` and stores neither an embedding nor t2d; a
layer after the first has an input_layernorm. Its Megatron export calls them ``midlayer.*`` or
``midlayer.{i}.*``, stores the embedding, and a layer after the first has a hidden_norm
(modelopt/torch/export/plugins/hf_spec_export.py and mcore_llama.py, 0.47.0). d2t is in the order of
frequency. Where it trained with plain RoPE it exports a yarn scaling, for use beyond that length.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Literal

from eyas.checkpoint import Checkpoint
from eyas.dialects.dialect import Maps
from eyas.dialects.flat import IDS, SECTION, flat_keys, flat_roles, has_eagle3_tensors, read_flat
from eyas.dialects.names import named
from eyas.dialects.reach import EITHER, TARGETS, Reach, require_within
from eyas.dialects.rope_reach import TRANSFORMERS
from eyas.dialects.stating import (
    after_layers,
    dtype_key,
    latent_keys,
    layer_keys,
    require_eagle3,
    tensor_names,
)
from eyas.spec import DraftSpec, Eagle3Spec, LaterNorm, Mla, Ownership

name = "modelopt"
keys = flat_keys
roles = flat_roles
maps: Maps = "d2t"
sorted_map = False  # the teacher's logits are gathered by d2t (plugins/hf_eagle.py:640-643)

Form = Literal["huggingface", "megatron"]

_WHOSE = "ModelOpt 0.47.0's EagleModule"
_HUGGING_FACE = Reach(
    dialect=name,
    code="ModelOpt 0.47.0's Hugging Face export",
    maps=maps,
    equal_map="none",  # speculative/plugins/modeling_eagle.py:50
    layer_ids=IDS,
    ascending=True,  # speculative/plugins/hf_eagle.py:405
    counts=(),  # as many as there are ids (modeling_eagle.py:60-64)
    target_width=False,  # the same lines
    embedding=TARGETS,  # export/plugins/hf_spec_export.py, LLAMA_EAGLE_SINGLE_LAYER
    head=EITHER,  # lm_head is optional (hf_spec_export.py, the same)
    bias="qkvo",  # attention_bias is that of transformers' LlamaAttention
    qk_norm=False,
    latent=True,
    later_norm=LaterNorm.INPUT_LAYERNORM,
    norm_before_residual=False,
    norm_output=False,
    input_norm=False,
    fc_norm=False,
    rope=TRANSFORMERS,
)
_MEGATRON = replace(
    _HUGGING_FACE,
    code="ModelOpt 0.47.0's Megatron export",
    embedding=EITHER,  # export/plugins/mcore_llama.py:115, where the drafter has one
    bias="none",  # QKVSlicing writes weights (mcore_llama.py:119)
    latent=False,  # eagle3_llama_causal_lm_export is the only mapping
    later_norm=LaterNorm.HIDDEN_NORM,  # mcore_llama.py:138
)
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


def write(
    spec: DraftSpec,
    roles_present: Collection[str],
    *,
    dtype: str | None = None,
    form: Form | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """A config as ModelOpt exports it, and role → tensor name.

    `form` is the export; without one it is Megatron's where the drafter has an embedding of its
    own or a hidden_norm in later layers, which the other has not. Raises ConversionError for a fact
    that ModelOpt cannot state.
    """
    spec = require_eagle3(spec, name)
    form = form or _form(spec)
    reach = _MEGATRON if form == "megatron" else _HUGGING_FACE
    fused = require_within(spec, roles_present, reach)
    latent = isinstance(spec.attention, Mla)
    config: dict[str, Any] = {
        "architectures": ["Eagle3DeepseekV2ForCausalLM" if latent else "LlamaForCausalLMEagle3"],
        "model_type": "kimi_k2" if latent else "llama",
        **(latent_keys(spec.attention) if isinstance(spec.attention, Mla) else {}),
        **layer_keys(spec),
        "draft_vocab_size": spec.draft_vocab_size.value,
        **dtype_key(dtype),
        SECTION: {
            # None are the default ones (speculative/eagle/default_config.py).
            IDS: after_layers(fused.boundaries.value) or [],
            "use_aux_hidden_state": True,
            "use_input_layernorm_in_first_layer": True,
            "use_last_layernorm": True,
            "use_mtp_layernorm": False,
        },
    }

    def rename(role: str) -> str:
        if form == "megatron" and spec.num_layers.value > 1:
            return re.sub(r"^layers\.", "midlayer.", role)
        return named(role, "midlayer." if form == "megatron" else "layers.0.")

    return config, tensor_names(roles_present, maps, rename)


def _form(spec: Eagle3Spec) -> Form:
    """The export that has what only one of them has."""
    own = spec.embedding.value is Ownership.OWN
    megatron = own or spec.later_norm.value is LaterNorm.HIDDEN_NORM
    return "megatron" if megatron and not isinstance(spec.attention, Mla) else "huggingface"
