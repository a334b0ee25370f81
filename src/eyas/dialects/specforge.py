"""The dialect of sgl-project/SpecForge, and of flat configs that show no other producer.

SpecForge calls the decoder layer ``midlayer.*``; a flattened speculators file calls it
``layers.0.*``. The class is ``LlamaForCausalLMEagle3``, or ``PEagleDraftModel`` for P-EAGLE. Its
DFlash relatives have a ``projector_type`` in ``dflash_config``, which z-lab's own lack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from eyas.checkpoint import Checkpoint
from eyas.dialects import block, dflash, specforge_config
from eyas.dialects.flat import KEYS, flat_roles, has_eagle3_tensors, read_flat
from eyas.dialects.keys import Keys, architectures
from eyas.dialects.parallel import drafts_in_parallel, in_parallel, with_mask_state
from eyas.spec import DraftSpec, Fact, Origin, assumed

name = specforge_config.name
maps = specforge_config.maps
sorted_map = True  # target_head[..., t2d] (specforge/algorithms/eagle3/model.py:494, 0.2.0)
write = specforge_config.write

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
