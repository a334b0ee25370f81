"""The dialect of SafeAILab/EAGLE: a target's class name over ``midlayer.*``.

Its training saves the layer, fc, norm, lm_head and the maps, with a config that is written by hand:
the class is the target's (``LlamaForCausalLM``), num_hidden_layers often the target's too, and
there are neither layer ids nor rope_theta (eagle/traineagle3/cnets.py and main.py at cb7e084).
"""

from __future__ import annotations

from eyas.checkpoint import Checkpoint
from eyas.dialects.flat import flat_keys, flat_roles, has_eagle3_tensors, read_flat, unwritten
from eyas.dialects.keys import architectures
from eyas.spec import Eagle3Spec

name = "eagle"
keys = flat_keys
roles = flat_roles
write = unwritten

_WHOSE = "EAGLE's cnets.py"


def recognise(checkpoint: Checkpoint) -> str | None:
    """EAGLE-3's tensors, the layer called midlayer, under a target's class name or none."""
    classes = architectures(checkpoint.config)
    if any("eagle" in one.lower() or not one.endswith("ForCausalLM") for one in classes):
        return None
    tensors = has_eagle3_tensors(checkpoint)
    if tensors is None or not any(name.startswith("midlayer.") for name in checkpoint.tensors):
        return None
    named = f"names a target's class, {classes[0]}" if classes else "names no class"
    return f"{checkpoint.config_file} {named}, and it has {tensors}"


def read(checkpoint: Checkpoint) -> Eagle3Spec:
    """The drafter as EAGLE computes it."""
    return read_flat(checkpoint, whose=_WHOSE)
