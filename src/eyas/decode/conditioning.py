"""What a drafter reads of its target: fused states at captured boundaries, or one last state."""

from __future__ import annotations

from torch import Tensor

from eyas.model.drafter import Drafter
from eyas.model.target import Reading, Target
from eyas.spec import Fused, boundaries_of


def boundaries_read(drafter: Drafter, target: Target) -> tuple[int, ...]:
    """The boundaries to capture for `drafter`; none when it reads the last state alone.

    Raises TargetError when the target has no such boundary.
    """
    conditioning = drafter.spec.conditioning
    if not isinstance(conditioning, Fused):
        return ()
    return boundaries_of(conditioning.boundaries.value, target.facts.num_layers)


def conditioned(drafter: Drafter, target: Target, reading: Reading) -> Tensor:
    """The first hidden state of a draft, [B, T, H], from a reading of the target."""
    conditioning = drafter.spec.conditioning
    if isinstance(conditioning, Fused):
        assert reading.captured_BTC is not None  # asked for by boundaries_read
        return drafter.fuse(reading.captured_BTC)
    if conditioning.after_final_norm.value:
        return target.normed(reading.final_BTH)
    return reading.final_BTH
