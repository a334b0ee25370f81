"""The dialect of vllm-project/speculators: a nested config and ``layers.0.*``.

The decoder layer's sizes are in ``transformer_layer_config``; layer ids are at the top level and
count boundaries as eyas does: id k is the state entering layer k (speculators 0.9.0,
models/eagle3/config.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from eyas.checkpoint import Checkpoint
from eyas.dialects.eagle3 import LLAMA_CONFIG, Source, read_eagle3
from eyas.dialects.keys import Keys
from eyas.dialects.names import roles_of
from eyas.dialects.stating import layer_keys, require_eagle3, require_stored
from eyas.dialects.tensors import Tensors
from eyas.dialects.unread import DRAFTER_KEYS, LAYER_KEYS
from eyas.errors import CheckpointError, ConversionError
from eyas.spec import (
    Boundaries,
    DefaultBoundaries,
    DraftSpec,
    Eagle3Spec,
    Fact,
    Feedback,
    Fused,
    LaterNorm,
    Mha,
    Ownership,
    assumed,
)

name = "speculators"

_VERSION = "0.9.0"  # whose layout is written
_LAYER = "transformer_layer_config"
_IDS = "eagle_aux_hidden_state_layer_ids"
_CLASS = "speculators' Eagle3SpeculatorConfig"
_RESIDUAL = f"{_CLASS} (its train command writes true, and vLLM takes true where it is absent)"

keys: Mapping[str, frozenset[str]] = {
    "": DRAFTER_KEYS
    | {
        _IDS,
        "architectures",
        "speculators_config",
        "speculators_model_type",
        "speculators_version",
    },
    _LAYER: LAYER_KEYS,
}


def recognise(checkpoint: Checkpoint) -> str | None:
    """A nested layer config, or speculators' own keys with its class names."""
    config = checkpoint.config
    for key in (_LAYER, "speculators_config", "speculators_model_type"):
        if key in config and (key != "speculators_model_type" or config[key] == "eagle3"):
            return f"{checkpoint.config_file} has {key}"
    return None


def roles(checkpoint: Checkpoint) -> Mapping[str, str]:
    """Tensor name → role."""
    return roles_of(checkpoint.tensors)


def read(checkpoint: Checkpoint) -> Eagle3Spec:
    """The drafter as speculators computes it."""
    top = Keys(checkpoint.config, checkpoint.config_file)
    layer = top.section(_LAYER)
    if not layer.values:
        raise CheckpointError(
            f"{top.place(_LAYER)} is missing, so the sizes of {checkpoint.location} are unknown",
            hint="export it again with speculators",
        )
    verifier = top.section("speculators_config").section("verifier")
    return read_eagle3(
        Source(
            tensors=Tensors.of(checkpoint, roles(checkpoint)),
            layer=layer,
            flags=(top,),
            boundaries=_boundaries(top),
            target_name=verifier.text("name_or_path"),
            whose=_CLASS,
            norm_before_residual_whose=_RESIDUAL,
            rope_theta=10000.0,
            rope_theta_whose=LLAMA_CONFIG,
        )
    )


def _boundaries(top: Keys) -> Fact[Boundaries]:
    ids = top.integers(_IDS)
    if ids is None or not ids.value:
        return assumed(DefaultBoundaries(), top.place(_IDS), whose=f"speculators {_VERSION}")
    return Fact(value=ids.value, origin=ids.origin, key=ids.key)


def write(
    spec: DraftSpec,
    roles_present: Collection[str],
    *,
    dtype: str | None = None,
    speculative_tokens: int = 3,
) -> tuple[dict[str, Any], dict[str, str]]:
    """A speculators config for `spec`, and role → tensor name.

    `dtype` is torch's name of the weights' type; `speculative_tokens` is the number that vLLM
    drafts when the directory itself is served. Raises ConversionError for a fact that the
    dialect cannot state.
    """
    spec = require_eagle3(spec, name)
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
    config: dict[str, Any] = {
        "architectures": ["Eagle3DraftModel"],
        "speculators_model_type": "eagle3",
        "speculators_version": _VERSION,
        "draft_vocab_size": spec.draft_vocab_size.value,
        "target_hidden_size": spec.target_hidden_size.value,
        _IDS: None if isinstance(boundaries, DefaultBoundaries) else list(boundaries),
        "norm_before_residual": spec.norm_before_residual.value,
        "norm_before_fc": conditioning.input_norm.value,
        "fc_norm": conditioning.fc_norm.value,
        "norm_output": spec.feedback.value is Feedback.POST_NORM,
        "embed_requires_grad": False,
        "tie_word_embeddings": spec.head.value is Ownership.TIED,
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [
                {
                    "proposal_type": "greedy",
                    "speculative_tokens": speculative_tokens,
                    "verifier_accept_k": 1,
                    "accept_tolerance": 0.0,
                }
            ],
            "verifier": {"name_or_path": spec.target_name.value, "architectures": []},
        },
        _LAYER: {
            "architectures": ["Qwen3ForCausalLM" if kind == "qwen3" else "LlamaForCausalLM"],
            "model_type": kind,
            **layer_keys(spec),
        },
    }
    if dtype is not None:
        config["dtype"] = dtype
    return config, {role: role for role in roles_present}
