"""The dialect of DeepSeek's DeepSpec: the target's config, with the drafter's keys at the top.

Its EAGLE-3 (``Qwen3Eagle3Model``) has norms on q and k and five states. Its DFlash and DSpark have
one class, ``Qwen3DSparkModel``: a DFlash is one with markov_rank 0 and no confidence head
(deepspec/modeling/dspark/qwen3/config.py and modeling.py at afdfa7c). Embedding and head are copies
of the target's; ``target_layer_ids`` count states after a layer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from eyas.checkpoint import Checkpoint
from eyas.dialects import block, flat
from eyas.dialects.keys import Keys, architectures, or_absent
from eyas.dialects.tensors import Tensors
from eyas.spec import DFlashSpec, DraftSpec, Fact, Recognised, assumed

name = "deepspec"
write = flat.unwritten

_CLASS = re.compile(r"(?P<layers>Qwen3|Gemma4)(?P<kind>Eagle3|DSpark)Model")
_TARGET = "target_model_name_or_path"
_WHOSE = "DeepSpec afdfa7c"


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
    ids = top.integers("target_layer_ids")

    def causal(sliding: Fact[frozenset[int]]) -> Fact[frozenset[int]]:
        return assumed(frozenset(), top.place("is_causal"), whose=_WHOSE)

    return block.read_block(
        block.BlockSource(
            tensors=Tensors.of(checkpoint, block.roles(checkpoint)),
            layer=top,
            own=(top,),
            boundaries=or_absent(ids, top.place("target_layer_ids")).map(
                lambda ids: None if ids is None else tuple(i + 1 for i in ids)
            ),
            causal=causal,
            anchored=True,
            usual_block=None,
            target_name=or_absent(top.text(_TARGET), top.place(_TARGET)),
            whose=_WHOSE,
        )
    )
