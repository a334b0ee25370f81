"""Tensors of the decoder layers as a reader looks for them: the norm of later ones, biases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eyas.checkpoint.header import tensor_nbytes
from eyas.checkpoint.rows import Made
from eyas.convert.material import Material, Part
from eyas.spec import DFlashSpec, Eagle3Spec, Fused, LaterNorm, Mha, inferred

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


def with_output_bias(material: Material, target: TargetFacts | None) -> Material | None:
    """`material` with a bias of zeros on o_proj, where it has another bias and none there.

    For readers that have one wherever q, k and v or fc have. None where it has no such bias, or
    where o_proj has one.
    """
    spec = material.spec
    if not isinstance(spec, Eagle3Spec) or not isinstance(spec.attention, Mha):
        return None
    fused = spec.conditioning
    if not spec.attention.bias.value and not (isinstance(fused, Fused) and fused.bias.value):
        return None
    parts: dict[str, Part | None] = {}
    for i in range(spec.num_layers.value):
        role = f"layers.{i}.self_attn.o_proj.bias"
        weight = material.parts.get(f"layers.{i}.self_attn.o_proj.weight")
        if weight is None or role in material.parts:
            return None
        dtype, shape = weight.rows.dtype, weight.rows.shape[:1]
        zeros = Made(dtype, shape, bytes(tensor_nbytes(dtype, shape)))
        parts[role] = Part(rows=zeros, origin="made of zeros")
    return material.changed("a bias of zeros is stored for o_proj", parts=parts)
