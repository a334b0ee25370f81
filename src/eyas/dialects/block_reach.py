"""BlockReach: what a producer's code computes of a DFlash or DSpark drafter, and its files can say.

All of them build Qwen3's decoder layers, whose attention has norms on q and k.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from eyas.dialects.dialect import Maps
from eyas.dialects.implied import block_roles, require_parts
from eyas.dialects.stating import Lack, dtype_key, layer_keys, require_known, require_stored
from eyas.errors import ConversionError
from eyas.spec import (
    Confidence,
    DFlashSpec,
    DraftSpec,
    Eagle3Spec,
    Markov,
    Mha,
    Ownership,
    VocabMap,
)

_KINDS = ("vanilla", "gated", "rnn")  # of the Markov head, in all that have one
_SLIDING, _FULL = "sliding_attention", "full_attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReach:
    """What a dialect can state. A field of one part is true where the code has it."""

    dialect: str
    code: str  # whose code, as a message names it
    maps: Maps
    embedding: frozenset[Ownership]
    head: frozenset[Ownership]
    embeddings_id: bool  # whether the layer ids can name the embeddings, boundary 0
    ascending: bool  # whether the layer ids must ascend
    target_width: bool  # a target_hidden_size that is not hidden_size
    heads: bool  # DSpark's Markov and confidence heads
    sliding: bool
    causal: frozenset[str]  # the layers that may be causal: none, those that slide, all
    usual_block: int | None  # how long a block is where no key says it


def require_block(spec: DraftSpec, dialect: str) -> DFlashSpec:
    """`spec` as a block drafter; raises ConversionError for a drafter of another kind."""
    if not isinstance(spec, DFlashSpec):
        kind = "an EAGLE-3" if isinstance(spec, Eagle3Spec) else f"a {spec.name}"
        raise ConversionError(f"{kind} drafter cannot be written as {dialect}")
    return spec


def require_block_within(
    spec: DFlashSpec,
    roles_present: Collection[str],
    reach: BlockReach,
    *,
    anchored: bool | None,
) -> None:
    """Raises ConversionError for a fact or a tensor of `spec` beyond `reach`.

    `anchored` says whether the anchor drafts in that code; None where a key says it.
    """
    require_known(reach.dialect, reach.code, _lacks(spec, reach, anchored))
    require_stored(spec, roles_present, reach.dialect)
    implied = block_roles(spec, maps=reach.maps, output_bias=True)
    require_parts(implied, roles_present, reach.dialect)


def block_layer_keys(spec: DFlashSpec, dtype: str | None) -> dict[str, Any]:
    """The keys of Qwen3's decoder layers."""
    count, sliding = spec.num_layers.value, spec.sliding_layers.value
    keys = {
        "model_type": "qwen3",
        **layer_keys(spec),
        "layer_types": [_SLIDING if i in sliding else _FULL for i in range(count)],
        **dtype_key(dtype),
    }
    if sliding:
        keys["use_sliding_window"] = True
        if spec.sliding_window.value is not None:
            keys["sliding_window"] = spec.sliding_window.value
    return keys


def head_keys(markov: Markov | None, confidence: Confidence | None) -> dict[str, Any]:
    """The keys of DSpark's heads, as all its producers call them."""
    keys: dict[str, Any] = {
        "markov_rank": 0 if markov is None else markov.rank.value,
        "enable_confidence_head": confidence is not None,
    }
    if markov is not None:
        keys["markov_head_type"] = markov.kind.value
    if confidence is not None:
        keys["confidence_head_with_markov"] = confidence.with_markov.value
    return keys


def stated(**facts: Any) -> dict[str, Any]:
    """`facts` without those that are absent."""
    return {key: value for key, value in facts.items() if value is not None}


def causal_layers(spec: DFlashSpec) -> str:
    """Which layers of `spec` are causal, in a word that BlockReach has; or some of them."""
    causal = spec.causal_layers.value
    if causal == spec.sliding_layers.value:
        return "those that slide"
    if not causal:
        return "none"
    return "all" if causal == frozenset(range(spec.num_layers.value)) else "some"


def _lacks(spec: DFlashSpec, reach: BlockReach, anchored: bool | None) -> Iterator[Lack]:
    yield from _states(spec, reach)
    yield from _layers(spec, reach)
    yield from _heads(spec, reach)
    yield from _vocabularies(spec, reach)
    if spec.block_size.value is None and reach.usual_block is not None:
        yield "a block of unknown length", f"takes {reach.usual_block} where no key says it"
    if anchored is not None and spec.sample_from_anchor.value is not anchored:
        does = "drafts" if anchored else "does not draft"
        yield "whether the anchor drafts", f"has no key for it, and its anchor {does}"


def _states(spec: DFlashSpec, reach: BlockReach) -> Iterator[Lack]:
    boundaries, count = spec.boundaries.value, spec.count.value
    if boundaries is not None:
        named = ", ".join(map(str, boundaries))
        if 0 in boundaries and not reach.embeddings_id:
            yield (
                "that the embeddings (boundary 0) are captured",
                "counts states after a layer in its layer ids",
            )
        if reach.ascending and any(k >= after for k, after in pairwise(boundaries)):
            yield f"the order of the captured boundaries {named}", "needs ids that ascend"
        if count != len(boundaries):
            yield f"that fc takes {count} states", f"would capture the boundaries {named}"
    if spec.target_hidden_size.value != spec.hidden_size.value and not reach.target_width:
        yield (
            f"that the target's states are {spec.target_hidden_size.value} wide",
            f"sizes fc by hidden_size, which is {spec.hidden_size.value}",
        )


def _layers(spec: DFlashSpec, reach: BlockReach) -> Iterator[Lack]:
    if not isinstance(spec.attention, Mha):
        yield "that attention is latent (MLA)", "has grouped-query attention alone"
    elif not spec.attention.qk_norm.value:
        yield "that q and k have no norms", "builds Qwen3's attention, which always has them"
    if spec.sliding_layers.value and not reach.sliding:
        yield "that layers slide", "makes each a full_attention"
    causal = causal_layers(spec)
    if causal not in reach.causal:
        layers = ", ".join(map(str, sorted(spec.causal_layers.value))) or "none"
        yield f"which layers are causal ({layers})", f"can make them {_either(reach.causal)}"


def _heads(spec: DFlashSpec, reach: BlockReach) -> Iterator[Lack]:
    if not reach.heads and (spec.markov is not None or spec.confidence is not None):
        yield "DSpark's heads", "has none"
    if spec.markov is not None and spec.markov.kind.value not in _KINDS:
        yield f"a Markov head of the kind {spec.markov.kind.value}", f"has {_either(_KINDS)}"
    if spec.confidence is not None and spec.confidence.with_markov.value and spec.markov is None:
        yield "a confidence head that sees a Markov row", "has no such row without a Markov head"


def _vocabularies(spec: DFlashSpec, reach: BlockReach) -> Iterator[Lack]:
    for part, owner, known in (
        ("embedding", spec.embedding.value, reach.embedding),
        ("head", spec.head.value, reach.head),
    ):
        if owner not in known:
            kept = "stores one in every drafter" if Ownership.OWN in known else "takes the target's"
            yield f"that the {part} is {_OWNERS[owner]}", kept
    reduced = spec.vocab_size.value != spec.draft_vocab_size.value
    if reach.maps == "none" and (reduced or spec.vocab_map.value is not VocabMap.IDENTITY):
        yield "a vocabulary of the drafter's own", "drafts the target's ids"
    elif spec.vocab_map.value is not VocabMap.IDENTITY and not reduced:
        yield "a map between vocabularies of one size", "has no d2t there"


def _either(words: Collection[str]) -> str:
    return " or ".join(sorted(words))


_OWNERS = {
    Ownership.OWN: "the drafter's own",
    Ownership.TARGET: "the target's",
    Ownership.TIED: "the embedding",
}
