"""Captured boundaries of the target, in the one convention used inside eyas.

Boundary k is the residual stream entering decoder layer k: 0 is the embeddings, L is after the
last layer and before the final norm. Every other convention ("after layer k", "+1") is translated
to it in dialects/ and engines/, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

from eyas.errors import TargetError


@dataclass(frozen=True, slots=True)
class DefaultBoundaries:
    """The ecosystem's default, which depends on the depth of the target.

    EAGLE's ``modeling_llama_kv.py`` captures the inputs of layers 2, L//2 and L-3; SpecForge's
    "after (1, L//2-1, L-4)", vLLM's and SGLang's defaults are the same three states.
    """

    def of(self, num_layers: int) -> tuple[int, ...]:
        """The three boundaries in a target of `num_layers` decoder layers."""
        boundaries = (2, num_layers // 2, num_layers - 3)
        if not 2 < boundaries[1] < boundaries[2]:
            raise TargetError(
                f"the default boundaries of a target with {num_layers} layers are {boundaries},"
                " which are not three different states",
                hint="write the layer ids into the drafter's config",
            )
        return boundaries


Boundaries = tuple[int, ...] | DefaultBoundaries


def boundaries_of(boundaries: Boundaries, num_layers: int) -> tuple[int, ...]:
    """`boundaries` in a target of `num_layers` layers; raises TargetError when one lies outside."""
    if isinstance(boundaries, DefaultBoundaries):
        return boundaries.of(num_layers)
    outside = [k for k in boundaries if not 0 <= k <= num_layers]
    if outside:
        raise TargetError(
            f"the drafter captures boundary {outside[0]}, but its target has {num_layers} layers"
            f" (boundaries 0 to {num_layers})",
            hint="check that --target is the model that the drafter was trained for",
        )
    return boundaries
