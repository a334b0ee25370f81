"""A drafter as it was trained: built from what its own dialect says."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from eyas import dialects
from eyas.checkpoint import Checkpoint
from eyas.checkpoint.gguf_rope import FACTORS
from eyas.errors import CheckpointError, UnsupportedError
from eyas.model.drafter import Drafter
from eyas.model.id_map import fault_of_map
from eyas.model.target import Target
from eyas.model.weights import RoleTensors
from eyas.spec import Eagle3Spec

# Training alone reads these: a mask over the target's vocabulary.
_TRAINING_ONLY = frozenset({"t2d"})
_OUTPUT_BIAS = "self_attn.o_proj.bias"


def trained_drafter(checkpoint: Checkpoint, target: Target) -> Drafter:
    """`checkpoint` as its producer means it, ready to draft for `target`, in the target's dtype.

    Raises CheckpointError for a weight that is missing, surplus or of another shape and for a map
    out of the target's vocabulary, TargetError when the target does not fit, and UnsupportedError
    for a drafter that eyas cannot run.
    """
    dialect, spec = dialects.read(checkpoint)
    if not isinstance(spec, Eagle3Spec):
        raise UnsupportedError(f"`{checkpoint.location}` is no EAGLE-3 drafter: {spec.unjudged}")
    drafter = Drafter(spec, embedding=target.embedding_VH, head=target.head_VH)
    for role in dialect.roles(checkpoint).values():
        if role.endswith(_OUTPUT_BIAS):  # no fact of the spec: it is there or not
            output = drafter.get_submodule(role.removesuffix(".bias"))
            output.register_parameter("bias", nn.Parameter(torch.zeros(spec.hidden_size.value)))
    shapes = {role: tuple(held.shape) for role, held in drafter.state_dict().items()}
    tensors = RoleTensors(checkpoint)
    state = {role: _weight(checkpoint, tensors, role, shape) for role, shape in shapes.items()}
    _require_usable_map(checkpoint, state, spec, target)
    used = {tensors.tensor(role) for role in shapes}
    unused = {
        name for name, role in dialect.roles(checkpoint).items() if role not in _TRAINING_ONLY
    } | (checkpoint.tensors.keys() - dialect.roles(checkpoint).keys())
    if FACTORS not in spec.rope.value.scaling.values():
        unused -= {FACTORS}  # they are those of a RoPE that the keys tell
    for name in sorted(unused - used):
        raise CheckpointError(
            f"{checkpoint.place(name)} is no weight of the drafter that the config describes",
            hint=f"eyas inspect {checkpoint.location}",
        )
    # first to the dtype, so that nothing is rounded twice on the way
    drafter = drafter.to(dtype=target.facts.dtype, device=target.embedding_VH.device)
    drafter.load_state_dict(state, strict=True)
    return drafter.eval()


def _weight(
    checkpoint: Checkpoint, tensors: RoleTensors, role: str, shape: tuple[int, ...]
) -> Tensor:
    name = tensors.tensor(role)
    if name is None:
        raise CheckpointError(
            f"`{checkpoint.location}` has no tensor for `{role}`, which its config asks for",
            hint=f"eyas inspect {checkpoint.location}",
        )
    held = tensors.read(role)
    if tuple(held.shape) != shape:
        raise CheckpointError(
            f"{checkpoint.place(name)} is {_sizes(tuple(held.shape))}, but the config asks for"
            f" {_sizes(shape)}",
            hint=f"eyas inspect {checkpoint.location}",
        )
    return held


def _require_usable_map(
    checkpoint: Checkpoint, state: dict[str, Tensor], spec: Eagle3Spec, target: Target
) -> None:
    if "d2t" not in state:
        return
    fault = fault_of_map(state["d2t"], spec.vocab_map.value, len(target.embedding_VH))
    if fault is not None:
        raise CheckpointError(
            f"`{checkpoint.location}` cannot draft for `{target.facts.name}`: {fault}",
            hint=f"eyas inspect {checkpoint.location}",
        )


def _sizes(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "a scalar"
