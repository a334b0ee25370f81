"""Whether a named target can be the one that a drafter was made for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from eyas.checks.view import Trained
from eyas.errors import TargetError
from eyas.spec import Eagle3Spec, Fused

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts

# How many states the ecosystem's default captures.
DEFAULT_STATES = 3


def open_fitting(location: str | Path, checkpoint: Checkpoint) -> TargetFacts:
    """The facts of the target at `location`, to which the drafter in `checkpoint` must fit.

    Raises TargetError when it does not, or cannot be opened.
    """
    from eyas.checkpoint import open_target
    from eyas.checks.compare import as_trained

    facts = open_target(location)
    require_fit(as_trained(checkpoint, target=facts))
    return facts


def require_fit(trained: Trained) -> None:
    """Raise TargetError when fc itself shows that the drafter is for a target of another width.

    A config that contradicts its own fc is a fault of the checkpoint, and a finding; a target
    that fits neither is a slip of whoever typed it, and nothing can be judged against it.
    """
    spec, target = trained.spec, trained.target
    if not isinstance(spec, Eagle3Spec) or target is None or target.hidden_size is None:
        return
    stated = spec.target_hidden_size.value
    fits_fc = _fc_inputs(trained) == _captured_states(spec) * target.hidden_size
    if stated == target.hidden_size or fits_fc:
        return
    name = spec.target_name.value
    made_for = f" (it was trained for {name})" if name else ""
    raise TargetError(
        f"{trained.checkpoint.location} takes states {stated} wide{made_for}, but the target"
        f" {target.location} is {target.hidden_size} wide",
        hint="name the target that the drafter was trained for after --target",
    )


def _captured_states(spec: Eagle3Spec) -> int:
    if isinstance(spec.conditioning, Fused):
        boundaries = spec.conditioning.boundaries.value
        return len(boundaries) if isinstance(boundaries, tuple) else DEFAULT_STATES
    return 1


def _fc_inputs(trained: Trained) -> int | None:
    """The width of fc's input, or None where the checkpoint has no fc matrix."""
    for tensor, role in trained.roles.items():
        shape = trained.checkpoint.tensors[tensor].shape
        if role == "fc.weight" and len(shape) == 2:
            return shape[1]
    return None
