"""The dialect of vllm-project/speculators: a nested config and ``layers.0.*``.

The decoder layer's sizes are in ``transformer_layer_config``; layer ids are at the top level and
count boundaries as eyas does: id k is the state entering layer k (speculators 0.9.0,
models/eagle3/config.py). ``speculators_model_type`` names the algorithm: eagle3, peagle, dflash or
dspark; all other types are known by name alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from eyas.checkpoint import Checkpoint
from eyas.dialects import block
from eyas.dialects.eagle3 import LLAMA_CONFIG, Source, read_eagle3
from eyas.dialects.keys import Keys, or_absent
from eyas.dialects.names import roles_of
from eyas.dialects.parallel import MASK, in_parallel, with_mask_state
from eyas.dialects.stating import layer_keys, require_eagle3, require_stored
from eyas.dialects.tensors import Tensors
from eyas.dialects.unread import DRAFTER_KEYS, LAYER_KEYS, PARALLEL_KEYS
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
    Recognised,
    assumed,
)

name = "speculators"

_VERSION = "0.9.0"  # whose layout is written
_LAYER = "transformer_layer_config"
_IDS = "eagle_aux_hidden_state_layer_ids"
_CLASS = "speculators' Eagle3SpeculatorConfig"
_RESIDUAL = f"{_CLASS} (its train command writes true, and vLLM takes true where it is absent)"

# What its drafters of a block are called, and whether their anchor drafts where no key says.
_BLOCKS = {"dflash": False, "dspark": True}
_BLOCK_IDS = "aux_hidden_state_layer_ids"
_NON_CAUSAL = "sliding_window_non_causal"

_KEYS = frozenset(
    {"architectures", "speculators_config", "speculators_model_type", "speculators_version"}
)


def recognise(checkpoint: Checkpoint) -> str | None:
    """A nested layer config, or speculators' own keys with its class names."""
    config = checkpoint.config
    for key in (_LAYER, "speculators_config", "speculators_model_type"):
        if key in config and (key != "speculators_model_type" or isinstance(config[key], str)):
            return f"{checkpoint.config_file} has {key}"
    return None


def keys(checkpoint: Checkpoint) -> Mapping[str, frozenset[str]]:
    """What reading a drafter of its algorithm looks at."""
    if _algorithm(checkpoint) in _BLOCKS:
        top = _KEYS | block.BLOCK_KEYS | {_BLOCK_IDS, _NON_CAUSAL}
        return {"": top, _LAYER: LAYER_KEYS | block.BLOCK_KEYS}
    return {"": _KEYS | DRAFTER_KEYS | PARALLEL_KEYS | {_IDS}, _LAYER: LAYER_KEYS}


def roles(checkpoint: Checkpoint) -> Mapping[str, str]:
    """Tensor name → role."""
    algorithm = _algorithm(checkpoint)
    if algorithm in _BLOCKS:
        return block.roles(checkpoint)
    if algorithm == "peagle":
        return with_mask_state(checkpoint)
    return roles_of(checkpoint.tensors) if algorithm == "eagle3" else {}


def read(checkpoint: Checkpoint) -> DraftSpec:
    """The drafter as speculators computes it."""
    algorithm = _algorithm(checkpoint)
    if algorithm not in ("eagle3", "peagle", *_BLOCKS):
        return Recognised(
            name=algorithm,
            why=f"{checkpoint.config_file} names the speculators type {algorithm}",
            lacks="eyas reads eagle3, peagle, dflash and dspark of speculators",
        )
    top = Keys(checkpoint.config, checkpoint.config_file)
    layer = top.section(_LAYER)
    if not layer.values:
        raise CheckpointError(
            f"{top.place(_LAYER)} is missing, so the sizes of {checkpoint.location} are unknown",
            hint="export it again with speculators",
        )
    if algorithm in _BLOCKS:
        return _read_block(checkpoint, top, layer, algorithm)
    drafter = _read_eagle3(checkpoint, top, layer)
    return in_parallel(checkpoint, drafter) if algorithm == "peagle" else drafter


def _algorithm(checkpoint: Checkpoint) -> str:
    """The algorithm that the config names, or else the tensors show."""
    top = Keys(checkpoint.config, checkpoint.config_file)
    named = top.text("speculators_model_type") or top.section("speculators_config").text(
        "algorithm"
    )
    # A test copy of a public drafter has the layer's model_type for its type.
    layer = top.section(_LAYER).values.get("model_type")
    if named is not None and named.value != layer:
        return named.value
    if block.shows_block(checkpoint):
        return "dspark" if "markov_head.markov_w1.weight" in checkpoint.tensors else "dflash"
    return "peagle" if MASK in checkpoint.tensors else "eagle3"


def _read_eagle3(checkpoint: Checkpoint, top: Keys, layer: Keys) -> Eagle3Spec:
    return read_eagle3(
        Source(
            tensors=Tensors.of(checkpoint, roles_of(checkpoint.tensors)),
            layer=layer,
            flags=(top,),
            boundaries=_boundaries(top),
            target_name=_verifier(top),
            whose=_CLASS,
            norm_before_residual_whose=_RESIDUAL,
            rope_theta=10000.0,
            rope_theta_whose=LLAMA_CONFIG,
        )
    )


def _read_block(checkpoint: Checkpoint, top: Keys, layer: Keys, algorithm: str) -> DraftSpec:
    """Its layers slide causally unless the config says otherwise (models/dflash/config.py)."""
    whose = "speculators' DFlashSpeculatorConfig"

    def causal(sliding: Fact[frozenset[int]]) -> Fact[frozenset[int]]:
        non_causal = top.flag(_NON_CAUSAL)
        if non_causal is None:
            return assumed(sliding.value, top.place(_NON_CAUSAL), whose=whose)
        return non_causal.map(lambda on: frozenset() if on else sliding.value)

    return block.read_block(
        block.BlockSource(
            tensors=Tensors.of(checkpoint, block.roles(checkpoint)),
            layer=layer,
            own=(top,),
            boundaries=or_absent(top.integers(_BLOCK_IDS), top.place(_BLOCK_IDS)),
            causal=causal,
            anchored=_BLOCKS[algorithm],
            usual_block=8,
            target_name=or_absent(
                _verifier(top), top.place("speculators_config.verifier.name_or_path")
            ),
            whose=whose,
        )
    )


def _verifier(top: Keys) -> Fact[str] | None:
    return top.section("speculators_config").section("verifier").text("name_or_path")


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
