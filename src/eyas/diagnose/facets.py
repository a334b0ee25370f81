"""Facets: the parts of a variant that are set apart from its matrices, each with its cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from eyas.diagnose.causes import CauseId
from eyas.diagnose.variant import Variant
from eyas.spec import (
    Eagle3Spec,
    Fact,
    Fused,
    LastState,
    Ownership,
    Unfused,
    VocabMap,
    boundaries_of,
)

CONDITIONING, BOUNDARIES, FUSION_NORMS, FUSION_BIAS = (
    "conditioning",
    "boundaries",
    "fusion norms",
    "fusion bias",
)
SHIFT, EPS, HEAD, EMBEDDING, MAP, ATTENTION, SIZES, DEPTH = (
    "shift",
    "eps",
    "head",
    "embedding",
    "vocab_map",
    "attention",
    "sizes",
    "depth",
)
ACTIVATION, ROPE, RESIDUAL, FEEDBACK = "activation", "rope", "residual", "feedback"
# A facet and the fields of Eagle3Spec that it is.
_FIELDS: dict[str, tuple[str, ...]] = {
    CONDITIONING: ("conditioning",),
    ATTENTION: ("attention",),
    SIZES: ("hidden_size", "target_hidden_size", "intermediate_size", "draft_vocab_size"),
    DEPTH: ("num_layers", "later_norm"),
    ACTIVATION: ("activation",),
    EPS: ("rms_norm_eps",),
    ROPE: ("rope", "max_position_embeddings"),
    RESIDUAL: ("norm_before_residual",),
    FEEDBACK: ("feedback",),
    MAP: ("vocab_map",),
    HEAD: ("head",),
    EMBEDDING: ("embedding",),
}
_FUSED: dict[str, tuple[str, ...]] = {
    BOUNDARIES: ("boundaries",),
    FUSION_NORMS: ("input_norm", "fc_norm"),
    FUSION_BIAS: ("bias", "count"),
}
_CAUSES = {
    BOUNDARIES: CauseId.BOUNDARIES,
    CONDITIONING: CauseId.FUSION_BYPASSED,
    FUSION_NORMS: CauseId.NORMS,
    FUSION_BIAS: CauseId.MATRIX_LOST,
    ATTENTION: CauseId.HEADS,
    SIZES: CauseId.SHAPES,
    DEPTH: CauseId.DEPTH,
    ACTIVATION: CauseId.ACTIVATION,
    EPS: CauseId.NORMS,
    ROPE: CauseId.ROPE,
    RESIDUAL: CauseId.RESIDUAL,
    FEEDBACK: CauseId.FEEDBACK,
    SHIFT: CauseId.TOKEN_SHIFT,
}
FACETS = (*_FUSED, *_FIELDS, SHIFT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A facet that two variants have differently, and the cause that this is."""

    facet: str
    cause: CauseId


def settings(mine: Variant, theirs: Variant, num_layers: int) -> list[Setting]:
    """Every facet in which `theirs` differs, with default boundaries told apart by their states."""
    found = []
    both = isinstance(mine.spec.conditioning, Fused) and isinstance(theirs.spec.conditioning, Fused)
    for facet in FACETS:
        if (facet in _FUSED) != both and facet in (*_FUSED, CONDITIONING):
            continue
        if _value(facet, mine, num_layers) != _value(facet, theirs, num_layers):
            found.append(Setting(facet=facet, cause=_cause(facet, mine.spec, theirs.spec)))
    return found


def put(mine: Variant, theirs: Variant, facets: Iterable[str]) -> Variant:
    """`mine` with `facets` as `theirs` has them."""
    spec, other, shift = mine.spec, theirs.spec, mine.shift
    for facet in facets:
        if facet == SHIFT:
            shift = theirs.shift
        elif facet in _FIELDS:
            spec = replace(spec, **{name: getattr(other, name) for name in _FIELDS[facet]})
        elif isinstance(spec.conditioning, Fused) and isinstance(other.conditioning, Fused):
            taken = {name: getattr(other.conditioning, name) for name in _FUSED[facet]}
            spec = replace(spec, conditioning=replace(spec.conditioning, **taken))
    return replace(mine, spec=spec, shift=shift)


def _value(facet: str, variant: Variant, num_layers: int) -> tuple[Any, ...]:
    spec = variant.spec
    if facet == SHIFT:
        return (variant.shift,)
    if facet == CONDITIONING:
        return _conditioning(spec, num_layers)
    if facet == ATTENTION:
        attention = spec.attention
        names = attention.__dataclass_fields__
        return (type(attention).__name__, *(getattr(attention, name).value for name in names))
    if facet == BOUNDARIES and isinstance(spec.conditioning, Fused):
        return tuple(boundaries_of(spec.conditioning.boundaries.value, num_layers))
    if facet == ROPE:
        rope = spec.rope.value
        return (rope.theta, rope.kind, *sorted((k, str(v)) for k, v in rope.scaling.items()))
    owner: Any = spec.conditioning if facet in _FUSED else spec
    facts: list[Fact[Any]] = [getattr(owner, name) for name in {**_FUSED, **_FIELDS}[facet]]
    return tuple(fact.value for fact in facts)


def _conditioning(spec: Eagle3Spec, num_layers: int) -> tuple[Any, ...]:
    """What a drafter reads, where at least one of two does not fuse."""
    match spec.conditioning:
        case LastState() as last:
            return ("the last state", last.after_final_norm.value)
        case Unfused() as unfused:
            return ("unfused", boundaries_of(unfused.boundaries.value, num_layers))
        case fused:
            return ("fused", fused.count.value)


def _cause(facet: str, mine: Eagle3Spec, theirs: Eagle3Spec) -> CauseId:
    if facet == MAP:
        mapped = (VocabMap.OFFSETS, VocabMap.ABSOLUTE)
        return CauseId.MAP_ABSOLUTE if theirs.vocab_map.value in mapped else CauseId.MAP_LOST
    if facet == HEAD:
        if Ownership.TIED in (mine.head.value, theirs.head.value):
            return CauseId.HEAD_TIED
        replaced = theirs.head.value is Ownership.TARGET
        return CauseId.HEAD_REPLACED if replaced else CauseId.HEAD_LOST
    if facet == EMBEDDING:
        replaced = theirs.embedding.value is Ownership.TARGET
        return CauseId.EMBEDDING_REPLACED if replaced else CauseId.EMBEDDING_WRONG
    return _CAUSES[facet]
