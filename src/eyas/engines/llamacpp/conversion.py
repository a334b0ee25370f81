"""What llama.cpp's own converter would make of a Hugging Face drafter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from shlex import quote

from eyas.checkpoint import Checkpoint

# The architectures of conversion/llama.py (21-35) that a drafter may bear.
_ARCHITECTURES = (
    "LlamaForCausalLM",
    "LlamaForCausalLMEagle3",
    "Eagle3LlamaForCausalLM",
    "Eagle3Speculator",
    "Eagle3DraftModel",
)
_MAPPED = re.compile(
    r"fc\.weight|input_norm\.weight|d2t|t2d|norm\.weight|lm_head\.weight|embed_tokens\.weight"
    r"|(midlayer|layers\.0|model\.layers\.0)\.("
    r"hidden_norm|input_layernorm|post_attention_layernorm"
    r"|self_attn\.[qkvo]_proj|mlp\.(gate|up|down)_proj)\.weight"
)


def command(checkpoint: Checkpoint, version: str) -> str:
    """What to type to have it as a GGUF file for build `version`, with nothing lost."""
    return (
        f"eyas convert {quote(checkpoint.location)} DRAFT.gguf --to llamacpp@{version}"
        " --target TARGET"
    )


def losses(checkpoint: Checkpoint, target_layers: int | None) -> Iterator[str]:
    """What the converter refuses or leaves out, each as half a sentence; most weighty first.

    Of a target with `target_layers` layers, leaving out the ids that it takes anyway is no loss.
    """
    raw = checkpoint.config
    nested = raw.get("transformer_layer_config")
    merged = {**raw, **nested} if isinstance(nested, Mapping) else raw
    yield from _refused(checkpoint, merged)
    for key in ("norm_output", "fc_norm"):
        if merged.get(key):
            yield f"leaves {key} out"
    eagle = merged.get("eagle_config")
    eagle = eagle if isinstance(eagle, Mapping) else {}
    ids = "eagle_aux_hidden_state_layer_ids"
    if eagle.get(ids) and not raw.get(ids) and not _default(eagle[ids], target_layers):
        yield "ignores the layer ids of eagle_config and takes the default ones"
    if eagle.get("norm_before_fc") and not raw.get("norm_before_fc"):
        yield "ignores norm_before_fc of eagle_config"


def _default(ids: object, layers: int | None) -> bool:
    """Whether ids that count the layer before are the inputs of layers 2, n//2 and n-3."""
    return layers is not None and ids == [1, layers // 2 - 1, layers - 4]


def _refused(checkpoint: Checkpoint, merged: Mapping[str, object]) -> Iterator[str]:
    names = checkpoint.config.get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    if name not in _ARCHITECTURES:
        yield f"does not take {name} for an EAGLE-3 drafter"
    layers = merged.get("num_hidden_layers")
    if "draft_vocab_size" not in merged:
        yield "takes a config without draft_vocab_size for an ordinary model's"
    elif layers != 1:
        yield f"takes a config with num_hidden_layers {layers}, and not 1, for an ordinary model's"
    strange = [name for name in checkpoint.tensors if not _MAPPED.fullmatch(name)]
    if strange:
        yield f"raises on {strange[0]}"
