"""Reach: what the code of a flat dialect computes, and so what its files can say of EAGLE-3.

A key that no code of the producer looks at states nothing, even where eyas would read it back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from eyas.dialects.dialect import Maps
from eyas.dialects.implied import eagle3_roles, require_parts
from eyas.dialects.rope_reach import RopeReach
from eyas.dialects.stating import Lack, require_known, require_stored
from eyas.spec import (
    DefaultBoundaries,
    Eagle3Spec,
    Feedback,
    Fused,
    LaterNorm,
    Mha,
    Ownership,
    VocabMap,
    VocabOrder,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a dialect can state. A field of one part is true where the code has it."""

    dialect: str
    code: str  # whose code, as a message names it
    maps: Maps
    equal_map: Literal["any", "identity", "none"]  # what may map between vocabularies of one size
    layer_ids: str | None  # the key of the ids, None where the code captures the default states
    ascending: bool  # whether states are captured in the order of the layers, whatever the ids'
    counts: Collection[int]  # how many states fc may take, any number where empty
    target_width: bool  # a target_hidden_size that is not hidden_size
    embedding: frozenset[Ownership]
    head: frozenset[Ownership]
    bias: Literal["none", "qkv", "qkvo"]  # where attention may have one
    qk_norm: bool  # true: always, false: never
    latent: bool
    later_norm: LaterNorm | None  # None where there is one layer
    norm_before_residual: bool
    norm_output: bool
    input_norm: bool
    fc_norm: bool
    rope: RopeReach


OWN = frozenset({Ownership.OWN})
TARGETS = frozenset({Ownership.TARGET})
EITHER = OWN | TARGETS


def require_within(spec: Eagle3Spec, roles_present: Collection[str], reach: Reach) -> Fused:
    """The conditioning of `spec`; raises ConversionError for a fact or a tensor beyond `reach`."""
    conditioning = spec.conditioning
    if isinstance(conditioning, Fused):
        lacks = list(_lacks(spec, conditioning, reach))
    else:
        lacks = [("that no states are fused", "runs fc over captured states in every drafter")]
    require_known(reach.dialect, reach.code, lacks)
    assert isinstance(conditioning, Fused)  # that it is not was the lack
    require_stored(spec, roles_present, reach.dialect)
    implied = eagle3_roles(spec, maps=reach.maps, output_bias=reach.bias == "qkvo")
    require_parts(implied, roles_present, reach.dialect)
    return conditioning


def _lacks(spec: Eagle3Spec, fused: Fused, reach: Reach) -> Iterator[Lack]:
    yield from _states(fused, reach)
    yield from _parts(spec, fused, reach)
    yield from _attention(spec, reach)
    yield from _vocabularies(spec, reach)
    rope = reach.rope.lack(spec.rope.value)
    if rope is not None:
        yield rope


def _states(fused: Fused, reach: Reach) -> Iterator[Lack]:
    boundaries, count = fused.boundaries.value, fused.count.value
    named = 3 if isinstance(boundaries, DefaultBoundaries) else len(boundaries)
    if not isinstance(boundaries, DefaultBoundaries):
        if reach.layer_ids is None:
            yield (
                f"the captured boundaries {', '.join(map(str, boundaries))}",
                "has no key for layer ids, and captures 2, L//2 and L-3 of a target's L layers",
            )
        elif 0 in boundaries:
            yield (
                "that the embeddings (boundary 0) are captured",
                f"counts states after a layer in {reach.layer_ids}",
            )
        if reach.ascending and any(k >= after for k, after in pairwise(boundaries)):
            yield (
                f"the order of the captured boundaries {', '.join(map(str, boundaries))}",
                "captures states in the order of the layers, each once",
            )
    if count != named:
        yield f"that fc takes {count} states", f"would capture {named}"
    if reach.counts and count not in reach.counts:
        allowed = " or ".join(map(str, sorted(reach.counts)))
        yield f"that fc takes {count} states", f"sizes fc for {allowed}"


def _parts(spec: Eagle3Spec, fused: Fused, reach: Reach) -> Iterator[Lack]:
    if spec.target_hidden_size.value != spec.hidden_size.value and not reach.target_width:
        yield (
            f"that the target's states are {spec.target_hidden_size.value} wide",
            f"sizes fc by hidden_size, which is {spec.hidden_size.value}",
        )
    flags = (
        (spec.norm_before_residual.value, reach.norm_before_residual, "norm_before_residual"),
        (spec.feedback.value is Feedback.POST_NORM, reach.norm_output, "norm_output"),
        (fused.input_norm.value, reach.input_norm, "norm_before_fc"),
        (fused.fc_norm.value, reach.fc_norm, "fc_norm"),
        (fused.bias.value, False, "bias"),
    )
    for on, known, key in flags:
        if on and not known:
            yield f"that {_MEANING[key]}", f"has no {key}"
    layers = spec.num_layers.value
    if layers > 1 and reach.later_norm is None:
        yield f"that there are {layers} decoder layers", "builds one"
    elif layers > 1 and spec.later_norm.value is not reach.later_norm:
        yield (
            f"that layers after the first call {spec.later_norm.value}",
            f"calls {reach.later_norm} there",
        )


_MEANING = {
    "norm_before_residual": "the residual is the state after hidden_norm",
    "norm_output": "a step hands on the state after the final norm",
    "norm_before_fc": "one norm goes over all captured states before fc",
    "fc_norm": "each captured state has a norm before fc",
    "bias": "fc has a bias",
}


def _attention(spec: Eagle3Spec, reach: Reach) -> Iterator[Lack]:
    attention = spec.attention
    if not isinstance(attention, Mha):
        if not reach.latent:
            yield "that attention is latent (MLA)", "has grouped-query attention alone"
        return
    if attention.qk_norm.value and not reach.qk_norm:
        yield "that q and k have norms", "has none"
    if not attention.qk_norm.value and reach.qk_norm:
        yield "that q and k have no norms", "always has them"
    if attention.bias.value and reach.bias == "none":
        yield "that q, k and v have a bias", "has none"


def _vocabularies(spec: Eagle3Spec, reach: Reach) -> Iterator[Lack]:
    if spec.embedding.value not in reach.embedding:
        own = spec.embedding.value is Ownership.OWN
        yield (
            f"that the embedding is {_EMBEDDING[own]}",
            "stores none" if own else "stores one in every drafter",
        )
    if spec.head.value not in reach.head:
        yield f"that the head is {_HEAD[spec.head.value]}", "stores one in every drafter"
    equal = spec.vocab_size.value == spec.draft_vocab_size.value
    if reach.maps == "none" and not equal:
        yield (
            f"that {spec.draft_vocab_size.value} of {spec.vocab_size.value} ids are drafted",
            "has the target's whole vocabulary",
        )
    elif equal and spec.vocab_map.value is not VocabMap.IDENTITY and not _passes(spec, reach):
        yield "a map between vocabularies of one size", "reads no d2t there"


def _passes(spec: Eagle3Spec, reach: Reach) -> bool:
    """Whether a map between vocabularies of one size may be stored; a sorted one does nothing."""
    if reach.equal_map == "identity":
        return spec.vocab_order.value is VocabOrder.SORTED
    return reach.equal_map == "any"


_EMBEDDING = {True: "the drafter's own", False: "the target's"}
_HEAD = {Ownership.TARGET: "the target's", Ownership.TIED: "the embedding"}
