"""The flat dialect: EAGLE, SpecForge and what was flattened to ``LlamaForCausalLMEagle3``.

SpecForge calls the decoder layer ``midlayer.*``; flattened speculators files and ModelOpt's call
it ``layers.0.*``, NeMo Automodel puts ``model.`` in front. The config is one flat object.

Layer ids, by key: ``eagle_config.eagle_aux_hidden_state_layer_ids`` counts states *after* a layer
(SpecForge 0.2.0, ModelOpt 0.47.0), so id k is boundary k + 1. The same key at the top level comes
from speculators and counts boundaries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from eyas.checkpoint import Checkpoint
from eyas.dialects.eagle3 import Source, read_eagle3
from eyas.dialects.keys import Keys, architectures
from eyas.dialects.names import named, roles_of
from eyas.dialects.stating import layer_keys, require_eagle3, require_stored
from eyas.dialects.tensors import Tensors
from eyas.dialects.unread import DRAFTER_KEYS, LAYER_KEYS
from eyas.errors import ConversionError
from eyas.spec import (
    Boundaries,
    DefaultBoundaries,
    DraftSpec,
    Eagle3Spec,
    Fact,
    Feedback,
    Fused,
    LastState,
    Mha,
    Mla,
    Unfused,
    assumed,
)

name = "specforge"

_IDS = "eagle_aux_hidden_state_layer_ids"
_WHOSE = "SpecForge 0.2.0's LlamaForCausalLMEagle3"
_THETA = "EAGLE's cnets.py"
# (section, key, what to add): the first that is there holds.
_ID_KEYS = (
    ("eagle_config", _IDS, 1),
    ("", _IDS, 0),
    ("", "aux_hidden_states_layer_ids", 1),  # AngelSlim 0.5.0
    ("", "target_layer_ids", 1),  # DeepSpec afdfa7c
)

keys: Mapping[str, frozenset[str]] = {
    "": LAYER_KEYS | DRAFTER_KEYS | {key for section, key, _ in _ID_KEYS if not section},
    "eagle_config": DRAFTER_KEYS | {_IDS},
}


def recognise(checkpoint: Checkpoint) -> str | None:
    """A class name with Eagle3 in it, or the tensors that only an EAGLE-3 drafter has."""
    for architecture in architectures(checkpoint.config):
        if "eagle3" in architecture.lower():
            return f"{checkpoint.config_file} names {architecture}"
    found = {role: tensor for tensor, role in roles(checkpoint).items()}
    norm = found.get("layers.0.hidden_norm.weight")
    if norm is not None and ("fc.weight" in found or "d2t" in found):
        return f"it has {norm} and {found.get('fc.weight') or found['d2t']}"
    return None


def roles(checkpoint: Checkpoint) -> Mapping[str, str]:
    """Tensor name → role."""
    return roles_of(checkpoint.tensors)


def read(checkpoint: Checkpoint) -> Eagle3Spec:
    """The drafter as SpecForge and EAGLE compute it."""
    top = Keys(checkpoint.config, checkpoint.config_file)
    return read_eagle3(
        Source(
            tensors=Tensors.of(checkpoint, roles(checkpoint)),
            layer=top,
            flags=(top.section("eagle_config"), top),
            boundaries=_boundaries(top),
            target_name=None,
            whose=_WHOSE,
            norm_before_residual_whose=_WHOSE,
            rope_theta=10000.0,
            rope_theta_whose=_THETA,
        )
    )


def _boundaries(top: Keys) -> Fact[Boundaries]:
    for section, key, shift in _ID_KEYS:
        ids = (top.section(section) if section else top).integers(key)
        if ids is not None and ids.value:
            boundaries = tuple(i + shift for i in ids.value)
            return Fact(value=boundaries, origin=ids.origin, key=ids.key)
    return assumed(DefaultBoundaries(), top.place(f"eagle_config.{_IDS}"), whose=_WHOSE)


def write(
    spec: DraftSpec,
    roles_present: Collection[str],
    *,
    layer_prefix: Literal["midlayer.", "layers.0."] = "midlayer.",
    ids: Literal["nested", "top", "both"] = "nested",
    dtype: str | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """A flat config for `spec`, and role → tensor name.

    `ids` says which keys state the boundaries, since readers differ in the one they look at;
    `dtype` is torch's name of the weights' type. Raises ConversionError for a fact that the
    dialect cannot state.
    """
    spec = require_eagle3(spec, name)
    require_stored(spec, roles_present, name)
    if spec.num_layers.value > 1 and layer_prefix == "midlayer.":
        raise ConversionError(
            f"midlayer.* names one decoder layer, and this drafter has {spec.num_layers.value}",
            hint="name them layers.*",
        )
    config: dict[str, Any] = {
        **_attention_keys(spec.attention),
        **layer_keys(spec),
        "draft_vocab_size": spec.draft_vocab_size.value,
        "norm_before_residual": spec.norm_before_residual.value,
        "norm_output": spec.feedback.value is Feedback.POST_NORM,
        **_conditioning_keys(spec.conditioning, ids),
    }
    # SGLang takes the mere presence of this key for a drafter with an embedding of its own.
    if spec.target_hidden_size.value != spec.hidden_size.value:
        config["target_hidden_size"] = spec.target_hidden_size.value
    if dtype is not None:
        config["torch_dtype"] = dtype
    return config, {role: named(role, layer_prefix) for role in roles_present}


def _attention_keys(attention: Mha | Mla) -> dict[str, Any]:
    if isinstance(attention, Mha):
        if attention.qk_norm.value:
            raise ConversionError(
                f"{name}'s LlamaForCausalLMEagle3 has no norms on q and k, which this drafter has"
            )
        return {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama"}
    return {
        "architectures": ["Eagle3DeepseekV2ForCausalLM"],
        "model_type": "kimi_k2",
        "num_attention_heads": attention.num_heads.value,
        "num_key_value_heads": attention.num_heads.value,
        "q_lora_rank": attention.q_lora_rank.value,
        "kv_lora_rank": attention.kv_lora_rank.value,
        "qk_nope_head_dim": attention.qk_nope_head_dim.value,
        "qk_rope_head_dim": attention.qk_rope_head_dim.value,
        "v_head_dim": attention.v_head_dim.value,
    }


def _conditioning_keys(conditioning: Fused | LastState | Unfused, ids: str) -> dict[str, Any]:
    if isinstance(conditioning, Unfused):
        raise ConversionError(f"{name} has no key for captured states without an fc over them")
    if isinstance(conditioning, LastState):
        if not conditioning.after_final_norm.value:
            raise ConversionError(
                f"{name} has no key for a state before the target's final norm, which this drafter"
                " uses"
            )
        return {"eagle_config": {"use_aux_hidden_state": False}}
    nested: dict[str, Any] = {"use_aux_hidden_state": True}
    keys: dict[str, Any] = {
        "norm_before_fc": conditioning.input_norm.value,
        "fc_norm": conditioning.fc_norm.value,
        "bias": conditioning.bias.value,
        "eagle_config": nested,
    }
    if conditioning.count.value != 3:
        keys["num_aux_hidden_states"] = conditioning.count.value
    boundaries = conditioning.boundaries.value
    if isinstance(boundaries, DefaultBoundaries):
        return keys
    if ids in ("nested", "both"):
        if 0 in boundaries:
            raise ConversionError(
                f"{name}'s layer ids count states after a layer, and cannot name the embeddings"
                " (boundary 0), which this drafter captures"
            )
        nested[_IDS] = [k - 1 for k in boundaries]
    if ids in ("top", "both"):
        keys[_IDS] = list(boundaries)
    return keys
