"""The dialect of SafeAILab/EAGLE: a target's class name over ``midlayer.*``.

Its training saves the layer, fc, norm, lm_head and the maps, with a config that is written by hand:
the class is the target's (``LlamaForCausalLM``), num_hidden_layers often the target's too, and
there are neither layer ids nor rope_theta (eagle/traineagle3/cnets.py and main.py at cb7e084).
Training has base 10000 whatever a config says; its inference, which is what reads a drafter, takes
rope_theta, head_dim and target_hidden_size where they are there (eagle/model/cnets.py at 148042c).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from eyas.checkpoint import Checkpoint
from eyas.dialects.dialect import Maps
from eyas.dialects.flat import flat_keys, flat_roles, has_eagle3_tensors, read_flat
from eyas.dialects.keys import architectures
from eyas.dialects.names import named
from eyas.dialects.reach import EITHER, OWN, Reach, require_within
from eyas.dialects.rope_reach import FACTOR_ALONE, type_and_factor
from eyas.dialects.stating import dtype_key, layer_keys, require_eagle3, tensor_names
from eyas.errors import ConversionError
from eyas.spec import DraftSpec, Eagle3Spec, Ownership

name = "eagle"
keys = flat_keys
roles = flat_roles
maps: Maps = "d2t+t2d"
sorted_map = True  # the teacher's logits are target[..., t2d] (traineagle3/cnets.py, forward)

_WHOSE = "EAGLE's cnets.py"
_REACH = Reach(
    dialect=name,
    code=_WHOSE,
    maps=maps,
    equal_map="identity",  # vocabularies of one size: d2t is not looked at (model/cnets.py)
    layer_ids=None,
    ascending=True,
    counts=(3,),
    target_width=True,
    embedding=EITHER,  # load_state_dict puts a stored one over the target's (model/ea_model.py)
    head=OWN,
    bias="none",
    qk_norm=False,
    latent=False,
    later_norm=None,
    norm_before_residual=False,
    norm_output=False,
    input_norm=False,
    fc_norm=False,
    rope=FACTOR_ALONE,
)


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


def write(
    spec: DraftSpec, roles_present: Collection[str], *, dtype: str | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """A config for EAGLE's inference, and role → tensor name.

    Raises ConversionError for a fact that EAGLE cannot state.
    """
    spec = require_eagle3(spec, name)
    require_within(spec, roles_present, _REACH)
    config: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **layer_keys(spec),
        "draft_vocab_size": spec.draft_vocab_size.value,
        **dtype_key(dtype),
    }
    del config["rope_parameters"]
    config |= type_and_factor(spec.rope.value)
    # Its mere presence keeps the target's embedding out (model/cnets.py, Model.__init__).
    if spec.target_hidden_size.value != spec.hidden_size.value:
        if spec.embedding.value is not Ownership.OWN:
            raise ConversionError(
                f"{name} cannot state that the embedding is the target's where its states are"
                f" {spec.target_hidden_size.value} wide: {_WHOSE} takes it over at one width alone"
            )
        config["target_hidden_size"] = spec.target_hidden_size.value
    return config, tensor_names(roles_present, maps, lambda role: named(role, "midlayer."))
