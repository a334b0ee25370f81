"""The dialect of lightseekorg/TorchSpec: flat, with the embedding, and as Llama or MLA.

Its converter drops the maps of a full vocabulary, writes draft_vocab_size all the same, and marks
the config with ``_torchspec_version``. Exporting for vLLM calls the layer ``layers.0.*``, and adds
1 to the layer ids of kimi_k2 (tools/convert_to_hf.py at 0db7eac).
"""

from __future__ import annotations

from collections.abc import Mapping

from eyas.checkpoint import Checkpoint
from eyas.dialects.flat import (
    IDS,
    SECTION,
    flat_boundaries,
    flat_keys,
    flat_roles,
    read_flat,
    unwritten,
)
from eyas.dialects.keys import Keys, architectures
from eyas.spec import Boundaries, Eagle3Spec, Fact

name = "torchspec"
keys = flat_keys
roles = flat_roles
write = unwritten

_VERSION = "_torchspec_version"
_WHOSE = "TorchSpec's LlamaForCausalLMEagle3"
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
