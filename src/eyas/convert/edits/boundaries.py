"""The captured boundaries, stated where a default is meant, or left to the default they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from eyas.checkpoint.rows import Gathered, GatheredColumns
from eyas.convert.material import Material, Part
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


def with_ascending_boundaries(material: Material, target: TargetFacts | None) -> Material | None:
    """`material` with its captured states in the order of the layers; None where they are.

    What belongs to each state goes with it: its columns of fc, its norm, its part of the norm over
    all of them.
    """
    fused, spec = _fused(material), material.spec
    if fused is None or not isinstance(spec, Eagle3Spec):
        return None
    found = fused.boundaries.value
    fc = material.parts.get("fc.weight")
    if isinstance(found, DefaultBoundaries) or fc is None or fused.count.value != len(found):
        return None
    order = sorted(range(len(found)), key=found.__getitem__)
    width = spec.target_hidden_size.value
    if order == list(range(len(found))) or fc.rows.shape[1:] != (len(found) * width,):
        return None
    parts: dict[str, Part | None] = {
        "fc.weight": replace(fc, rows=GatheredColumns(fc.rows, order)),
        **{
            f"fc_norm.{i}.weight": material.parts.get(f"fc_norm.{k}.weight")
            for i, k in enumerate(order)
        },
    }
    norm = material.parts.get("input_norm.weight")
    if norm is not None:
        picked = [k * width + i for k in order for i in range(width)]
        parts["input_norm.weight"] = replace(norm, rows=Gathered(norm.rows, picked))
    boundaries: Fact[Boundaries] = inferred(tuple(found[k] for k in order), fused.boundaries.key)
    return material.changed(
        "the captured states are put in the order of the layers, and the columns of fc with them",
        facts={"conditioning": replace(fused, boundaries=boundaries)},
        parts=parts,
    )


def _with(material: Material, fused: Fused, boundaries: Boundaries, what: str) -> Material:
    found: Fact[Boundaries] = inferred(boundaries, fused.boundaries.key)
    conditioning = replace(fused, boundaries=found)
    return material.changed(what, facts={"conditioning": conditioning}, parts={})


def _fused(material: Material) -> Fused | None:
    facts = material.facts
    fused = facts.conditioning if isinstance(facts, Eagle3Spec) else None
    return fused if isinstance(fused, Fused) else None
