"""The dialect of sgl-project/SpecForge, and of flat configs that show no other producer.

SpecForge calls the decoder layer ``midlayer.*``; a flattened speculators file calls it
``layers.0.*``. The class is ``LlamaForCausalLMEagle3``, or ``PEagleDraftModel`` for P-EAGLE. Its
DFlash relatives have a ``projector_type`` in ``dflash_config``, which z-lab's own lack.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Literal

from eyas.checkpoint import Checkpoint
from eyas.dialects import block, dflash
from eyas.dialects.flat import IDS, KEYS, flat_roles, has_eagle3_tensors, read_flat
from eyas.dialects.keys import Keys, architectures
from eyas.dialects.names import named
from eyas.dialects.parallel import drafts_in_parallel, in_parallel, with_mask_state
from eyas.dialects.stating import layer_keys, require_eagle3, require_stored
from eyas.errors import ConversionError
from eyas.spec import (
    DefaultBoundaries,
    DraftSpec,
    Fact,
    Feedback,
    Fused,
    LastState,
    Mha,
    Mla,
    Origin,
    Unfused,
    assumed,
)

name = "specforge"

_WHOSE = "SpecForge 0.2.0's LlamaForCausalLMEagle3"
_PARALLEL = "SpecForge 0.2.0's PEagleDraftModel"
_BLOCK = "SpecForge's DFlashDraftModel"
_DSPARK = "DSparkDraftModel"
_THETA = "EAGLE's cnets.py"
# SpecForge 0.2.0 normalises what the head sees where norm_output is true and always feeds back the
# state before the norm. Its pull request 879 gave the key the meaning that vLLM and SGLang give it.
_NORM_OUTPUT = (
    "vLLM, SGLang and SpecForge after 0.2.0; SpecForge 0.2.0 itself trains with pre-norm feedback"
)


def recognise(checkpoint: Checkpoint) -> str | None:
    """A class name of its own or with Eagle3 in it, a projector_type, or EAGLE-3's tensors."""
    parallel = drafts_in_parallel(checkpoint)
    if parallel is not None:
        return parallel
    mark = _block_mark(checkpoint)
    if mark is not None:
        return mark
    for architecture in architectures(checkpoint.config):
        if "eagle3" in architecture.lower():
            return f"{checkpoint.config_file} names {architecture}"
    tensors = has_eagle3_tensors(checkpoint)
    return None if tensors is None else f"it has {tensors}"


def keys(checkpoint: Checkpoint) -> Mapping[str, frozenset[str]]:
    """What reading a drafter of its kind looks at."""
    return KEYS if _block_mark(checkpoint) is None else block.KEYS


def roles(checkpoint: Checkpoint) -> Mapping[str, str]:
    """Tensor name → role."""
    if _block_mark(checkpoint) is not None:
        return block.roles(checkpoint)
    if drafts_in_parallel(checkpoint) is not None:
        return with_mask_state(checkpoint)
    return flat_roles(checkpoint)


def read(checkpoint: Checkpoint) -> DraftSpec:
    """The drafter as SpecForge computes it."""
    if _block_mark(checkpoint) is not None:
        spread = _spread(Keys(checkpoint.config, checkpoint.config_file))
        return dflash.read_as(checkpoint, whose=_BLOCK, usual_block=None, spread=spread)
    if drafts_in_parallel(checkpoint) is not None:
        return in_parallel(checkpoint, read_flat(checkpoint, whose=_PARALLEL))
    spec = read_flat(checkpoint, whose=_WHOSE, theta_whose=_THETA)
    if spec.feedback.origin is not Origin.DECLARED:
        return spec
    return replace(spec, feedback=replace(spec.feedback, whose=_NORM_OUTPUT))


def _spread(top: Keys) -> Fact[tuple[int, ...]] | None:
    """The boundaries of its block drafters where no ids are stated: spread over the target.

    They are states after a layer, from 1 to the third from last
    (specforge/modeling/draft/dflash.py at 0354ed8).
    """
    depth, count = top.size("num_target_layers"), top.size("num_hidden_layers")
    if depth is None or count is None or depth.value < 5:
        return None
    place = top.section(block.SECTION).place("target_layer_ids")
    if count.value == 1:
        return assumed((depth.value // 2 + 1,), place, whose=_BLOCK)
    span = (depth.value - 4) / (count.value - 1)
    spread = tuple(round(1 + i * span) + 1 for i in range(count.value))
    return assumed(spread, place, whose=_BLOCK)


def _block_mark(checkpoint: Checkpoint) -> str | None:
    """Why a drafter is one of SpecForge's DFlash relatives, None where it is none."""
    if _DSPARK in architectures(checkpoint.config):
        return f"{checkpoint.config_file} names {_DSPARK}"
    section = checkpoint.config.get(block.SECTION)
    kind = section.get("projector_type") if isinstance(section, Mapping) else None
    if kind not in ("dflash", "dspark") or not block.shows_block(checkpoint):
        return None
    return f"{checkpoint.config_file} :: {block.SECTION}.projector_type is {kind}"


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
        nested[IDS] = [k - 1 for k in boundaries]
    if ids in ("top", "both"):
        keys[IDS] = list(boundaries)
    return keys
