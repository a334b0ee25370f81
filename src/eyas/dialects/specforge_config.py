"""The configs of sgl-project/SpecForge's drafters, as eyas writes them.

Its EAGLE-3 form is what engines read of a flat config, so that it has keys beyond SpecForge's own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal

from eyas.dialects import block, dflash
from eyas.dialects.block_reach import head_keys, require_block_within
from eyas.dialects.dialect import Maps
from eyas.dialects.flat import IDS, SECTION
from eyas.dialects.names import named
from eyas.dialects.parallel import MASK, parallel_keys, require_mask_state
from eyas.dialects.reach import OWN, Reach, require_within
from eyas.dialects.rope_reach import RopeReach
from eyas.dialects.stating import (
    after_layers,
    dtype_key,
    latent_keys,
    layer_keys,
    require_eagle3,
    require_stored,
    tensor_names,
)
from eyas.errors import ConversionError
from eyas.spec import (
    DefaultBoundaries,
    DFlashSpec,
    DraftSpec,
    Feedback,
    Fused,
    LastState,
    LaterNorm,
    Mha,
    Mla,
    Ownership,
    PEagleSpec,
    Unfused,
)

name = "specforge"
maps: Maps = "d2t+t2d"

Written = tuple[dict[str, Any], dict[str, str]]

_PARALLEL = Reach(
    dialect=name,
    code="SpecForge 0.2.0's PEagleDraftModel",  # specforge/modeling/draft/peagle.py
    maps=maps,
    equal_map="any",  # :239-242
    layer_ids=f"{SECTION}.{IDS}",
    ascending=True,  # its targets run in SGLang, which captures as it goes through the layers
    counts=(3,),  # :208-212
    target_width=True,
    embedding=OWN,
    head=OWN,
    bias="none",
    qk_norm=False,
    latent=False,
    later_norm=LaterNorm.INPUT_LAYERNORM,
    norm_before_residual=True,
    norm_output=True,  # nothing is fed back
    input_norm=False,
    fc_norm=False,
    rope=RopeReach(numbers={"default": frozenset()}),  # :223, of which the scaling is not taken
)
_BLOCK = replace(
    dflash.REACH,
    dialect=name,
    code="SpecForge's DFlashDraftModel",
    ascending=True,  # as above
    heads=True,  # its DSparkDraftModel
    usual_block=None,
)


def write(
    spec: DraftSpec,
    roles_present: Collection[str],
    *,
    layer_prefix: Literal["midlayer.", "layers.0."] = "midlayer.",
    ids: Literal["nested", "top", "both"] = "nested",
    dtype: str | None = None,
    target_layers: int | None = None,
    null_vocab: bool = False,
) -> Written:
    """A flat config for `spec`, and role → tensor name.

    `ids` says which keys state an EAGLE-3 drafter's boundaries, since readers differ in the one
    they look at, and `layer_prefix` what its layer is called; `dtype` is torch's name of the
    weights' type. With `null_vocab` a drafter whose head is the target's has no size of its own
    vocabulary, by which SGLang tells it. `target_layers` is the depth of the target, without which
    SpecForge builds no DFlash drafter. Raises ConversionError for a fact that the dialect cannot
    state.
    """
    if isinstance(spec, DFlashSpec):
        return _write_block(spec, roles_present, dtype, target_layers)
    if isinstance(spec, PEagleSpec):
        return _write_parallel(spec, roles_present, dtype)
    spec = require_eagle3(spec, name)
    require_stored(spec, roles_present, name)
    if spec.num_layers.value > 1 and layer_prefix == "midlayer.":
        raise ConversionError(
            f"midlayer.* names one decoder layer, and this drafter has {spec.num_layers.value}",
            hint="name them layers.*",
        )
    shared = spec.head.value is Ownership.TARGET
    config: dict[str, Any] = {
        **_attention_keys(spec.attention),
        **layer_keys(spec),
        "draft_vocab_size": None if shared and null_vocab else spec.draft_vocab_size.value,
        "norm_before_residual": spec.norm_before_residual.value,
        "norm_output": spec.feedback.value is Feedback.POST_NORM,
        **_conditioning_keys(spec.conditioning, ids),
    }
    # SGLang takes the mere presence of this key for a drafter with an embedding of its own.
    if spec.target_hidden_size.value != spec.hidden_size.value:
        config["target_hidden_size"] = spec.target_hidden_size.value
    config |= dtype_key(dtype)
    return config, {role: named(role, layer_prefix) for role in roles_present}


def _write_parallel(spec: PEagleSpec, roles_present: Collection[str], dtype: str | None) -> Written:
    drafter = spec.drafter
    require_mask_state(spec, roles_present, _PARALLEL.code)
    fused = require_within(drafter, set(roles_present) - {MASK}, _PARALLEL)
    config: dict[str, Any] = {
        "architectures": ["PEagleDraftModel"],
        "model_type": "llama",
        **layer_keys(drafter),
        "draft_vocab_size": drafter.draft_vocab_size.value,
        "norm_before_residual": drafter.norm_before_residual.value,
        **parallel_keys(spec),
        **dtype_key(dtype),
    }
    if drafter.feedback.value is Feedback.POST_NORM:
        config["norm_output"] = True
    if drafter.target_hidden_size.value != drafter.hidden_size.value:
        config["target_hidden_size"] = drafter.target_hidden_size.value
    ids = after_layers(fused.boundaries.value)
    if ids is not None:
        config[SECTION] = {IDS: ids, "use_aux_hidden_state": True}
    return config, tensor_names(roles_present, maps, lambda role: role)


def _write_block(
    spec: DFlashSpec,
    roles_present: Collection[str],
    dtype: str | None,
    target_layers: int | None,
) -> Written:
    # A depth beside absent ids would spread them over the target.
    depth = None if spec.boundaries.value is None else target_layers
    require_block_within(spec, roles_present, _BLOCK, anchored=spec.markov is not None)
    section = {**dflash.section_keys(spec), "projector_type": spec.name.lower()}
    if spec.name == "DSpark":
        section |= head_keys(spec.markov, spec.confidence)
        section["attention_mode"] = _mode(spec)
    config = {
        "architectures": [f"{spec.name}DraftModel"],
        **dflash.flat_block(spec, dtype, depth),
        block.SECTION: section,
    }
    return config, tensor_names(roles_present, dflash.maps, lambda role: role)


def _mode(spec: DFlashSpec) -> str:
    """What its DSparkDraftModel asks to be told of the heads."""
    attention = spec.attention
    equal = isinstance(attention, Mha) and attention.num_heads.value == attention.num_kv_heads.value
    return "mha" if equal else "gqa"


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
        **latent_keys(attention),
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
        nested[IDS] = [k - 1 for k in boundaries]
    if ids in ("top", "both"):
        keys[IDS] = list(boundaries)
    return keys
