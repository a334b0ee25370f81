"""The norm of decoder layers after the first, under the name that its reader looks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eyas.convert.material import Material, Part
from eyas.spec import DFlashSpec, LaterNorm, inferred

if TYPE_CHECKING:
    from eyas.checkpoint import TargetFacts


def with_other_later_norm(material: Material, target: TargetFacts | None) -> Material | None:
    """`material` with the other name for the norm before a later layer's attention.

    A later layer calls one norm, whatever its name, so that it computes the same. None where there
    is one layer, or where a layer has tensors for both names.
    """
    facts = material.facts
    if isinstance(facts, DFlashSpec) or facts.later_norm.value is None:
        return None
    before = facts.later_norm.value
    (after,) = set(LaterNorm) - {before}
    parts: dict[str, Part | None] = {}
    for i in range(1, facts.num_layers.value):
        old, new = (f"layers.{i}.{norm}.weight" for norm in (before, after))
        if old not in material.parts or new in material.parts:
            return None
        parts |= {old: None, new: material.parts[old]}
    return material.changed(
        f"the {before} of layers after the first is called {after}",
        facts={"later_norm": inferred(after, facts.later_norm.key)},
        parts=parts,
    )
