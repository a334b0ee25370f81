"""The dialect of lightseekorg/TorchSpec: flat, with the embedding, and as Llama or MLA.

Its converter drops the maps of a full vocabulary, writes draft_vocab_size all the same, and marks
the config with ``_torchspec_version``. Exporting for vLLM calls the layer ``layers.0.*``, and adds
1 to the layer ids of kimi_k2 (tools/convert_to_hf.py at 0db7eac).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Literal

from eyas.checkpoint import Checkpoint
from eyas.dialects.dialect import Maps
from eyas.dialects.flat import IDS, SECTION, flat_boundaries, flat_keys, flat_roles, read_flat
from eyas.dialects.keys import Keys, architectures
from eyas.dialects.names import named
from eyas.dialects.reach import OWN, Reach, require_within
from eyas.dialects.rope_reach import TORCHSPEC
from eyas.dialects.stating import (
    after_layers,
    dtype_key,
    latent_keys,
    layer_keys,
    require_eagle3,
    tensor_names,
)
from eyas.errors import ConversionError
from eyas.spec import Boundaries, DraftSpec, Eagle3Spec, Fact, Feedback, Mla

name = "torchspec"
keys = flat_keys
roles = flat_roles
maps: Maps = "d2t+t2d"
sorted_map = True  # target_lm_head_weight[t2d] (torchspec/models/draft/base.py at 0283fdf)

_VERSION = "_torchspec_version"
_WHOSE = "TorchSpec's LlamaForCausalLMEagle3"
_REACH = Reach(
    dialect=name,
    code=_WHOSE,
    maps=maps,
    equal_map="none",  # tools/convert_to_hf.py leaves the maps of a full vocabulary out
    layer_ids=f"{SECTION}.{IDS}",
    ascending=True,  # its targets run in SGLang, which captures as it goes through the layers
    counts=(),  # as many as there are ids (torchspec/models/draft/base.py at 0283fdf)
    target_width=True,
    embedding=OWN,
    head=OWN,
    bias="none",
    qk_norm=False,
    latent=True,
    later_norm=None,
    norm_before_residual=False,
    norm_output=True,
    input_norm=False,
    fc_norm=True,
    rope=TORCHSPEC,
)
# torchspec/models/draft/deepseek_eagle.py at 2b242a9
_LATENT = replace(_REACH, code="TorchSpec's Eagle3DeepseekV2ForCausalLM", counts=(3,))
# The keys of its MLA recipes, which say what each of its drafters does.
_RECIPE = {
    "use_aux_hidden_state": True,
    "use_input_layernorm_in_first_layer": True,
    "use_last_layernorm": True,
    "use_mtp_layernorm": False,
}
_LATENT_FLAG = "use_mtp_layernorm"  # in the eagle_config of its MLA recipes


def recognise(checkpoint: Checkpoint) -> str | None:
    """Its version in the config, or its layouts: an own embedding, and no maps."""
    config = checkpoint.config
    if _VERSION in config:
        return f"{checkpoint.config_file} has {_VERSION}"
    found = set(flat_roles(checkpoint).values())
    if not {"embed_tokens.weight", "fc.weight", "lm_head.weight"} <= found or "d2t" in found:
        return None
    nested = config.get(SECTION)
    classes = architectures(config)
    if "Eagle3DeepseekV2ForCausalLM" in classes:
        if isinstance(nested, Mapping) and _LATENT_FLAG in nested:
            return "it has an own embedding, and its class and eagle_config are the MLA recipe's"
        return None
    size = config.get("draft_vocab_size")
    whole = isinstance(size, int) and size == config.get("vocab_size")
    if "LlamaForCausalLMEagle3" in classes and nested is None and whole:
        return (
            f"it has an own embedding and no maps, and {checkpoint.config_file} gives a full"
            " vocabulary as draft_vocab_size"
        )
    return None


def read(checkpoint: Checkpoint) -> Eagle3Spec:
    """The drafter as TorchSpec computes it."""
    return read_flat(checkpoint, whose=_WHOSE, boundaries=_shifted(checkpoint))


def _shifted(checkpoint: Checkpoint) -> Fact[Boundaries] | None:
    """The ids of a kimi_k2 drafter exported for vLLM, which are boundaries; None for all others.

    Those that begin with 1 were never shifted: its recipe has [1, 29, 57], and SGLang 0.5.23 tells
    the two apart in the same way (srt/models/deepseek_v2.py:3470).
    """
    top = Keys(checkpoint.config, checkpoint.config_file)
    ids = top.section(SECTION).integers(IDS)
    exported = any(name.startswith("layers.") for name in checkpoint.tensors)
    if ids is None or checkpoint.config.get("model_type") != "kimi_k2" or not exported:
        return None
    if not ids.value or ids.value[0] == 1:
        return flat_boundaries(top, whose=_WHOSE)
    return ids.map(lambda ids: ids)


def write(
    spec: DraftSpec,
    roles_present: Collection[str],
    *,
    dtype: str | None = None,
    layer_prefix: Literal["midlayer.", "layers.0."] = "midlayer.",
) -> tuple[dict[str, Any], dict[str, str]]:
    """A config as TorchSpec exports it, and role → tensor name.

    `layer_prefix` is ``layers.0.`` in its export for vLLM. Raises ConversionError for a fact that
    TorchSpec cannot state.
    """
    spec = require_eagle3(spec, name)
    latent = isinstance(spec.attention, Mla)
    fused = require_within(spec, roles_present, _LATENT if latent else _REACH)
    config: dict[str, Any] = {
        "architectures": ["Eagle3DeepseekV2ForCausalLM" if latent else "LlamaForCausalLMEagle3"],
        "model_type": "kimi_k2" if latent else "llama",
        **(latent_keys(spec.attention) if isinstance(spec.attention, Mla) else {}),
        **layer_keys(spec),
        "draft_vocab_size": spec.draft_vocab_size.value,
        "fc_norm": fused.fc_norm.value,
        "norm_output": spec.feedback.value is Feedback.POST_NORM,
        **dtype_key(dtype),
        _VERSION: "unknown",  # what its converter writes where it finds no version
    }
    if spec.target_hidden_size.value != spec.hidden_size.value:
        config["target_hidden_size"] = spec.target_hidden_size.value
    ids = after_layers(fused.boundaries.value)
    if ids is not None and latent and layer_prefix == "layers.0.":
        ids = _exported(ids)
    if latent or ids is not None:
        config[SECTION] = {**_RECIPE, **({} if ids is None else {IDS: ids})}
    return config, tensor_names(roles_present, maps, lambda role: named(role, layer_prefix))


def _exported(ids: list[int]) -> list[int]:
    """`ids` of a kimi_k2 drafter as the export for vLLM shifts them."""
    if ids[0] == 0:
        raise ConversionError(
            f"{name} cannot state boundary 1 over layers.0.*: ids that begin with 1 are there those"
            " that were never shifted",
            hint="name the layer midlayer.*",
        )
    return [k + 1 for k in ids]
