"""A drafter as it was trained: built from what its own dialect says."""

from __future__ import annotations

from eyas import dialects
from eyas.checkpoint import Checkpoint
from eyas.errors import CheckpointError, UnsupportedError
from eyas.model.drafter import Drafter
from eyas.model.target import Target
from eyas.model.weights import read_tensor
from eyas.spec import Eagle3Spec

# Training alone reads these: a mask over the target's vocabulary.
_TRAINING_ONLY = frozenset({"t2d"})


def trained_drafter(checkpoint: Checkpoint, target: Target) -> Drafter:
    """`checkpoint` as its producer means it, ready to draft for `target`, in the target's dtype.

    Raises CheckpointError for a weight that is missing or surplus, TargetError when the target
    does not fit, and UnsupportedError for a drafter that eyas cannot run.
    """
    dialect, spec = dialects.read(checkpoint)
    if not isinstance(spec, Eagle3Spec):
        raise UnsupportedError(f"`{checkpoint.location}` is no EAGLE-3 drafter: {spec.why}")
    drafter = Drafter(spec, embedding=target.embedding_VH, head=target.head_VH)
    roles = dialect.roles(checkpoint)
    named = {role: tensor for tensor, role in roles.items() if role not in _TRAINING_ONLY}
    needed = set(drafter.state_dict())
    for missing in sorted(needed - named.keys()):
        raise CheckpointError(
            f"`{checkpoint.location}` has no tensor for `{missing}`, which its config asks for",
            hint=f"eyas inspect {checkpoint.location}",
        )
    surplus = set(checkpoint.tensors) - roles.keys() | {named[r] for r in named.keys() - needed}
    for name in sorted(surplus):
        raise CheckpointError(
            f"{checkpoint.place(name)} is no weight of the drafter that the config describes",
            hint=f"eyas inspect {checkpoint.location}",
        )
    drafter.load_state_dict({r: read_tensor(checkpoint, named[r]) for r in needed}, strict=True)
    return drafter.to(dtype=target.facts.dtype, device=target.embedding_VH.device).eval()
