"""The configs of vllm-project/speculators' drafters, as eyas writes them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from eyas.dialects.block_reach import (
    BlockReach,
    block_layer_keys,
    causal_layers,
    head_keys,
    require_block_within,
    stated,
)
from eyas.dialects.dialect import Maps
from eyas.dialects.parallel import MASK, parallel_keys, require_mask_state
from eyas.dialects.reach import EITHER
from eyas.dialects.stating import layer_keys, require_eagle3, require_stored
from eyas.errors import ConversionError
from eyas.spec import (
    DefaultBoundaries,
    DFlashSpec,
    DraftSpec,
    Eagle3Spec,
    Feedback,
    Fused,
    LaterNorm,
    Mha,
    Ownership,
    PEagleSpec,
)

name = "speculators"
maps: Maps = "d2t+t2d"

VERSION = "0.9.0"  # whose layout is written
LAYER = "transformer_layer_config"
IDS = "eagle_aux_hidden_state_layer_ids"
BLOCK_IDS = "aux_hidden_state_layer_ids"
NON_CAUSAL = "sliding_window_non_causal"
USUAL_BLOCK = 8  # models/dflash/config.py

Written = tuple[dict[str, Any], dict[str, str]]

_BLOCK = BlockReach(
    dialect=name,
    code="speculators 0.9.0's DFlashDraftModel",
    maps=maps,
    embedding=EITHER,  # one that is not stored is the verifier's (models/dflash/core.py)
    head=EITHER,  # the same, where the vocabulary is the verifier's
    embeddings_id=True,
    ascending=False,
    target_width=True,  # its config has the key, which vLLM reads; its own fc does not look at it
    heads=True,
    sliding=True,
    causal=frozenset({"none", "those that slide"}),
    usual_block=USUAL_BLOCK,
)
_CLASSES = {"DFlash": "DFlashDraftModel", "DSpark": "DSparkDraftModel"}


def write(
    spec: DraftSpec,
    roles_present: Collection[str],
    *,
    dtype: str | None = None,
    speculative_tokens: int = 3,
) -> Written:
    """A speculators config for `spec`, and role → tensor name.

    `dtype` is torch's name of the weights' type; `speculative_tokens` is the number that vLLM
    drafts when the directory itself is served. Raises ConversionError for a fact that the
    dialect cannot state.
    """
    names = {role: role for role in roles_present}
    if isinstance(spec, DFlashSpec):
        require_block_within(spec, roles_present, _BLOCK, anchored=None)
        config = _block_config(spec, speculative_tokens)
    elif isinstance(spec, PEagleSpec):
        require_mask_state(spec, roles_present, "speculators' PEagleDraftModel")
        config = _eagle3_config(spec.drafter, set(roles_present) - {MASK}, speculative_tokens)
        config |= _parallel(spec, config)
    else:
        spec = require_eagle3(spec, name)
        config = _eagle3_config(spec, roles_present, speculative_tokens)
    if dtype is not None:
        config["dtype"] = dtype
    return config, names


def _parallel(spec: PEagleSpec, config: dict[str, Any]) -> dict[str, Any]:
    """What a P-EAGLE config has where an EAGLE-3 one of the same drafter is `config`."""
    return {
        "architectures": ["PEagleDraftModel"],
        "speculators_model_type": "peagle",
        "embed_requires_grad": True,
        "speculators_config": {**config["speculators_config"], "algorithm": "peagle"},
        **parallel_keys(spec),
    }


def _block_config(spec: DFlashSpec, speculative_tokens: int) -> dict[str, Any]:
    boundaries = spec.boundaries.value
    algorithm = spec.name.lower()
    return {
        "architectures": [_CLASSES[spec.name]],
        "speculators_model_type": algorithm,
        "speculators_version": VERSION,
        "draft_vocab_size": spec.draft_vocab_size.value,
        "target_hidden_size": spec.target_hidden_size.value,
        "sample_from_anchor": spec.sample_from_anchor.value,
        NON_CAUSAL: bool(spec.sliding_layers.value) and causal_layers(spec) == "none",
        **stated(
            block_size=spec.block_size.value,
            mask_token_id=spec.mask_token_id.value,
            aux_hidden_state_layer_ids=None if boundaries is None else list(boundaries),
        ),
        **(head_keys(spec.markov, spec.confidence) if spec.name == "DSpark" else {}),
        "speculators_config": _speculation(algorithm, spec.target_name.value, speculative_tokens),
        LAYER: block_layer_keys(spec, None),
    }


def _speculation(algorithm: str, target: str | None, tokens: int) -> dict[str, Any]:
    return {
        "algorithm": algorithm,
        "default_proposal_method": "greedy",
        "proposal_methods": [
            {
                "proposal_type": "greedy",
                "speculative_tokens": tokens,
                "verifier_accept_k": 1,
                "accept_tolerance": 0.0,
            }
        ],
        "verifier": {"name_or_path": target, "architectures": []},
    }


def _eagle3_config(
    spec: Eagle3Spec, roles_present: Collection[str], speculative_tokens: int
) -> dict[str, Any]:
    require_stored(spec, roles_present, name)
    attention, conditioning = spec.attention, spec.conditioning
    if not isinstance(attention, Mha):
        raise ConversionError(f"{name} has no latent attention (MLA), which this drafter has")
    if not isinstance(conditioning, Fused):
        raise ConversionError(f"{name} always fuses captured states, and this drafter does not")
    if conditioning.bias.value:
        raise ConversionError(f"{name} has no bias on fc, which this drafter has")
    if spec.later_norm.value is LaterNorm.HIDDEN_NORM:
        raise ConversionError(
            f"{name} calls input_layernorm in layers after the first, and this drafter hidden_norm"
        )
    boundaries = conditioning.boundaries.value
    kind = "qwen3" if attention.qk_norm.value else "llama"
    return {
        "architectures": ["Eagle3DraftModel"],
        "speculators_model_type": "eagle3",
        "speculators_version": VERSION,
        "draft_vocab_size": spec.draft_vocab_size.value,
        "target_hidden_size": spec.target_hidden_size.value,
        IDS: None if isinstance(boundaries, DefaultBoundaries) else list(boundaries),
        "norm_before_residual": spec.norm_before_residual.value,
        "norm_before_fc": conditioning.input_norm.value,
        "fc_norm": conditioning.fc_norm.value,
        "norm_output": spec.feedback.value is Feedback.POST_NORM,
        "embed_requires_grad": False,
        "tie_word_embeddings": spec.head.value is Ownership.TIED,
        "speculators_config": _speculation("eagle3", spec.target_name.value, speculative_tokens),
        LAYER: {
            "architectures": ["Qwen3ForCausalLM" if kind == "qwen3" else "LlamaForCausalLM"],
            "model_type": kind,
            **layer_keys(spec),
        },
    }
