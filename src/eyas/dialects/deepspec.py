"""The dialect of DeepSeek's DeepSpec: the target's config, with the drafter's keys at the top.

Its EAGLE-3 (``Qwen3Eagle3Model``) has norms on q and k and five states. Its DFlash and DSpark have
one class, ``Qwen3DSparkModel``: a DFlash is one with markov_rank 0 and no confidence head
(deepspec/modeling/dspark/qwen3/config.py and modeling.py at afdfa7c). Embedding and head are copies
of the target's; ``target_layer_ids`` count states after a layer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from eyas.checkpoint import Checkpoint
from eyas.dialects import block, flat
from eyas.dialects.block_reach import (
    BlockReach,
    block_layer_keys,
    head_keys,
    require_block_within,
    stated,
)
from eyas.dialects.dialect import Maps
from eyas.dialects.keys import Keys, architectures, or_absent
from eyas.dialects.reach import OWN, Reach, require_within
from eyas.dialects.rope_reach import TRANSFORMERS
from eyas.dialects.stating import (
    after_layers,
    dtype_key,
    layer_keys,
    require_eagle3,
    tensor_names,
)
from eyas.dialects.tensors import Tensors
from eyas.spec import DFlashSpec, DraftSpec, Eagle3Spec, Fact, Fused, Recognised, assumed

name = "deepspec"
maps: Maps = "none"
sorted_map = False

_CLASS = re.compile(r"(?P<layers>Qwen3|Gemma4)(?P<kind>Eagle3|DSpark)Model")
_TARGET = "target_model_name_or_path"
_WHOSE = "DeepSpec afdfa7c"
_IDS = "target_layer_ids"
_EAGLE3 = Reach(
    dialect=name,
    code="DeepSpec's Qwen3Eagle3Model",
    maps=maps,
    equal_map="none",
    layer_ids=_IDS,
    ascending=True,  # deepspec/modeling/eagle3/common.py, validate_eagle3_target_layer_ids
    counts=(5,),  # the same
    target_width=False,
    embedding=OWN,
    head=OWN,
    bias="qkvo",  # attention_bias of transformers' Qwen3Attention
    qk_norm=True,
    latent=False,
    later_norm=None,
    norm_before_residual=False,
    norm_output=False,
    input_norm=False,
    fc_norm=False,
    rope=TRANSFORMERS,
)
_BLOCK = BlockReach(
    dialect=name,
    code="DeepSpec's Qwen3DSparkModel",
    maps=maps,
    embedding=OWN,
    head=OWN,
    embeddings_id=True,  # -1: deepspec/modeling/dspark/common.py, extract_context_feature
    ascending=True,  # the same, validate_target_layer_ids
    target_width=False,  # deepspec/modeling/dspark/qwen3/modeling.py, fc
    heads=True,
    sliding=False,  # deepspec/modeling/dspark/qwen3/config.py, layer_types
    causal=frozenset({"none", "those that slide"}),  # of which there are none
    usual_block=None,
)


def recognise(checkpoint: Checkpoint) -> str | None:
    """Its classes, or its number of anchors over a block drafter's tensors."""
    named = _named(checkpoint)
    if named is not None:
        return f"{checkpoint.config_file} names {named[0]}"
    if "num_anchors" in checkpoint.config and block.shows_block(checkpoint):
        return f"it has hidden_norm.weight beside fc, and {checkpoint.config_file} num_anchors"
    return None


def keys(checkpoint: Checkpoint) -> Mapping[str, frozenset[str]]:
    """What reading a drafter of its kind looks at."""
    own = frozenset({"num_anchors", _TARGET})
    sections = block.KEYS if _in_blocks(checkpoint) else flat.KEYS
    return {**sections, "": sections[""] | own}


def roles(checkpoint: Checkpoint) -> Mapping[str, str]:
    """Tensor name → role."""
    return block.roles(checkpoint) if _in_blocks(checkpoint) else flat.flat_roles(checkpoint)


def read(checkpoint: Checkpoint) -> DraftSpec:
    """The drafter as DeepSpec computes it; its kinds with Gemma's layers are known by name."""
    named = _named(checkpoint)
    if named is not None and named["layers"] != "Qwen3":
        return Recognised(
            name=f"{named['kind']} of DeepSpec",
            why=f"{checkpoint.config_file} names {named[0]}",
            lacks=f"eyas does not compute with {named['layers']}'s decoder layers",
        )
    if _in_blocks(checkpoint):
        return _read_block(checkpoint)
    return flat.read_flat(checkpoint, whose=_WHOSE, target_key=_TARGET)


def _named(checkpoint: Checkpoint) -> re.Match[str] | None:
    matches = (_CLASS.fullmatch(one) for one in architectures(checkpoint.config))
    return next((match for match in matches if match is not None), None)


def _in_blocks(checkpoint: Checkpoint) -> bool:
    named = _named(checkpoint)
    return block.shows_block(checkpoint) if named is None else named["kind"] == "DSpark"


def _read_block(checkpoint: Checkpoint) -> DFlashSpec:
    top = Keys(checkpoint.config, checkpoint.config_file)
    ids = top.integers(_IDS, least=-1)  # -1: the embeddings

    def causal(sliding: Fact[frozenset[int]]) -> Fact[frozenset[int]]:
        return assumed(frozenset(), top.place("is_causal"), whose=_WHOSE)

    return block.read_block(
        block.BlockSource(
            tensors=Tensors.of(checkpoint, block.roles(checkpoint)),
            layer=top,
            own=(top,),
            boundaries=or_absent(ids, top.place(_IDS)).map(
                lambda ids: None if ids is None else tuple(i + 1 for i in ids)
            ),
            causal=causal,
            anchored=True,
            usual_block=None,
            target_name=or_absent(top.text(_TARGET), top.place(_TARGET)),
            whose=_WHOSE,
        )
    )


def write(
    spec: DraftSpec,
    roles_present: Collection[str],
    *,
    dtype: str | None = None,
    target_layers: int | None = None,
    num_anchors: int = 512,
) -> tuple[dict[str, Any], dict[str, str]]:
    """A config for DeepSpec, and role → tensor name.

    `target_layers` is the depth of the target, and `num_anchors` how many blocks training
    takes of a sequence; no drafter depends on them. Raises ConversionError for a fact that
    DeepSpec cannot state.
    """
    if isinstance(spec, DFlashSpec):
        require_block_within(spec, roles_present, _BLOCK, anchored=True)
        config = _block_config(spec, dtype) | {"num_anchors": num_anchors}
    else:
        spec = require_eagle3(spec, name)
        fused = require_within(spec, roles_present, _EAGLE3)
        config = _eagle3_config(spec, fused, dtype)
    config |= stated(num_target_layers=target_layers)
    config |= stated(**{_TARGET: spec.target_name.value})
    return config, tensor_names(roles_present, maps, lambda role: role)


def _block_config(spec: DFlashSpec, dtype: str | None) -> dict[str, Any]:
    boundaries = spec.boundaries.value
    return {
        "architectures": ["Qwen3DSparkModel"],
        **block_layer_keys(spec, dtype),
        **head_keys(spec.markov, spec.confidence),
        **stated(
            block_size=spec.block_size.value,
            mask_token_id=spec.mask_token_id.value,
            target_layer_ids=None if boundaries is None else [k - 1 for k in boundaries],
        ),
    }


def _eagle3_config(spec: Eagle3Spec, fused: Fused, dtype: str | None) -> dict[str, Any]:
    return {
        "architectures": ["Qwen3Eagle3Model"],
        "model_type": "qwen3",
        **layer_keys(spec),
        "layer_types": ["full_attention"] * spec.num_layers.value,
        _IDS: after_layers(fused.boundaries.value),
        **dtype_key(dtype),
    }
