"""What a drafter reads of its target: captured states, fused or as they are, or one last state."""

from __future__ import annotations

from torch import Tensor

from eyas.model.drafter import Drafter
from eyas.model.target import Reading, Target
from eyas.spec import LastState, Unfused, boundaries_of


def boundaries_read(drafter: Drafter, target: Target) -> tuple[int, ...]:
    """The boundaries to capture for `drafter`; none when it reads the last state alone.

    Raises TargetError when the target has no such boundary.
    """
    conditioning = drafter.spec.conditioning
    if isinstance(conditioning, LastState):
        return ()
    return boundaries_of(conditioning.boundaries.value, target.facts.num_layers)


def conditioned(drafter: Drafter, target: Target, reading: Reading) -> Tensor:
    """The first hidden state of a draft, [B, T, H], from a reading of the target."""
    conditioning = drafter.spec.conditioning
    if isinstance(conditioning, LastState):
        if conditioning.after_final_norm.value:
            return target.normed(reading.final_BTH)
        return reading.final_BTH
    assert reading.captured_BTC is not None  # asked for by boundaries_read
    if isinstance(conditioning, Unfused):
        return reading.captured_BTC
    return drafter.fuse(reading.captured_BTC)
