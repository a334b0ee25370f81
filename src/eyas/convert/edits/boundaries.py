"""The captured boundaries, stated where a default is meant, or left to the default they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from eyas.convert.material import Material
from eyas.errors import TargetError
from eyas.spec import Boundaries, DefaultBoundaries, Eagle3Spec, Fact, Fused, inferred

if TYPE_CHECKING:
    from eyas.checkpoint import TargetFacts


def with_stated_boundaries(material: Material, target: TargetFacts | None) -> Material | None:
    """`material` with the default boundaries of `target` written out; None where none are meant."""
    fused, depth = _fused(material), None if target is None else target.num_layers
    if fused is None or depth is None:
        return None
    if not isinstance(fused.boundaries.value, DefaultBoundaries):
        return None
    try:
        stated = fused.boundaries.value.of(depth)
    except TargetError:
        return None
    what = f"the default layer ids of a target of {depth} layers are stated"
    return _with(material, fused, stated, what)


def with_default_boundaries(material: Material, target: TargetFacts | None) -> Material | None:
    """`material` without layer ids, where they are the default of `target`; None where not."""
    fused, depth = _fused(material), None if target is None else target.num_layers
    if fused is None or depth is None:
        return None
    try:
        if DefaultBoundaries().of(depth) != fused.boundaries.value:
            return None
    except TargetError:
        return None
    what = f"the layer ids are left out: they are the default of a target of {depth} layers"
    return _with(material, fused, DefaultBoundaries(), what)


def _with(material: Material, fused: Fused, boundaries: Boundaries, what: str) -> Material:
    found: Fact[Boundaries] = inferred(boundaries, fused.boundaries.key)
    conditioning = replace(fused, boundaries=found)
    return material.changed(what, facts={"conditioning": conditioning}, parts={})


def _fused(material: Material) -> Fused | None:
    facts = material.facts
    fused = facts.conditioning if isinstance(facts, Eagle3Spec) else None
    return fused if isinstance(fused, Fused) else None
