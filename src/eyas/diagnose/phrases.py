"""Phrases: what a variant has in one of its facets, in the words that a reader knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eyas.diagnose.facets import (
    ACTIVATION,
    ATTENTION,
    BOUNDARIES,
    CONDITIONING,
    DEPTH,
    EMBEDDING,
    EPS,
    FEEDBACK,
    FUSION_BIAS,
    FUSION_NORMS,
    HEAD,
    MAP,
    RESIDUAL,
    ROPE,
    SHIFT,
    SIZES,
)
from eyas.diagnose.variant import Variant
from eyas.spec import (
    Eagle3Spec,
    Fused,
    LastState,
    Mha,
    Ownership,
    Unfused,
    VocabMap,
    boundaries_of,
)

_MAPS = {
    VocabMap.IDENTITY: "the target's whole vocabulary",
    VocabMap.OFFSETS: "d2t read as offsets",
    VocabMap.ABSOLUTE: "d2t read as ids",
    VocabMap.PREFIX: "no map, draft ids as they are",
}
_HEADS = {
    Ownership.OWN: "its own head",
    Ownership.TARGET: "the target's head",
    Ownership.TIED: "its embedding as the head",
}
_EMBEDDINGS = {
    Ownership.OWN: "its own embedding",
    Ownership.TARGET: "the target's embedding",
}


def phrase(facet: str, variant: Variant, num_layers: int) -> str:
    """What `variant` has in `facet`; `num_layers` are the target's."""
    if facet in (CONDITIONING, BOUNDARIES, FUSION_NORMS, FUSION_BIAS):
        return _conditioning(facet, variant.spec, num_layers)
    if facet == SHIFT:
        return f"a token shift of {variant.shift}"
    return _PHRASES[facet](variant.spec)


def _conditioning(facet: str, spec: Eagle3Spec, num_layers: int) -> str:
    match spec.conditioning:
        case LastState() as last:
            where = "after" if last.after_final_norm.value else "before"
            return f"the target's last state alone, {where} the final norm"
        case Unfused() as unfused:
            known = boundaries_of(unfused.boundaries.value, num_layers)
            return f"states {_listed(known)} without fc"
        case Fused() as fused:
            return _fused(facet, fused, num_layers)


def _fused(facet: str, fused: Fused, num_layers: int) -> str:
    if facet == FUSION_NORMS:
        flags = {"input_norm": fused.input_norm.value, "fc_norm": fused.fc_norm.value}
        return ", ".join(f"{name} {'on' if on else 'off'}" for name, on in flags.items())
    if facet == FUSION_BIAS:
        bias = "a bias" if fused.bias.value else "no bias"
        return f"fc over {fused.count.value} states with {bias}"
    if facet == BOUNDARIES:
        return f"boundaries {_listed(boundaries_of(fused.boundaries.value, num_layers))}"
    return f"{fused.count.value} states through fc"


def _attention(spec: Eagle3Spec) -> str:
    attention = spec.attention
    if not isinstance(attention, Mha):
        ranks = f"ranks {attention.q_lora_rank.value} and {attention.kv_lora_rank.value}"
        return f"latent attention of {attention.num_heads.value} heads, {ranks}"
    said = (
        f"{attention.num_heads.value} heads of {attention.head_dim.value},"
        f" {attention.num_kv_heads.value} for keys"
    )
    said += ", with biases" if attention.bias.value else ""
    return said + (", with norms of q and k" if attention.qk_norm.value else "")


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def _rope(spec: Eagle3Spec) -> str:
    rope = spec.rope.value
    scaling = "".join(f", {key} {value}" for key, value in sorted(rope.scaling.items()))
    return f"RoPE base {rope.theta:g}, {rope.kind}{scaling}"


def _depth(spec: Eagle3Spec) -> str:
    layers = spec.num_layers.value
    return f"{layers} decoder layer{'s' if layers > 1 else ''}"


def _sizes(spec: Eagle3Spec) -> str:
    return (
        f"hidden size {spec.hidden_size.value}, the target's {spec.target_hidden_size.value},"
        f" feed-forward {spec.intermediate_size.value},"
        f" draft vocabulary {spec.draft_vocab_size.value}"
    )


_PHRASES: Mapping[str, Callable[[Eagle3Spec], str]] = {
    ATTENTION: _attention,
    DEPTH: _depth,
    SIZES: _sizes,
    ACTIVATION: lambda spec: f"activation {spec.activation.value}",
    EPS: lambda spec: f"rms_norm_eps {spec.rms_norm_eps.value:g}",
    ROPE: _rope,
    RESIDUAL: lambda spec: f"norm_before_residual {str(spec.norm_before_residual.value).lower()}",
    FEEDBACK: lambda spec: f"feedback {spec.feedback.value}",
    MAP: lambda spec: _MAPS[spec.vocab_map.value],
    HEAD: lambda spec: _HEADS[spec.head.value],
    EMBEDDING: lambda spec: _EMBEDDINGS[spec.embedding.value],
}
