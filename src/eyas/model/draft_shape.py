"""The plain numbers of an Eagle3Spec, as the modules need them."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.errors import UnsupportedError
from eyas.spec import (
    Eagle3Spec,
    Feedback,
    Fused,
    LaterNorm,
    Mha,
    Mla,
    Ownership,
    Rope,
    VocabMap,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedShape:
    """Sizes of grouped-query attention."""

    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool
    qk_norm: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentShape:
    """Sizes of latent attention; each head's query and key is `nope` plain and `rope` rotated."""

    heads: int
    query_rank: int
    key_value_rank: int
    nope: int
    rope: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftShape:
    """Sizes and conventions of a drafter.

    `captured` is the number of captured states that fc fuses, or 0 when fc never runs.
    `later_norm` names the norm before attention in the layers after the first; None when there
    is but one.
    """

    hidden: int
    target_hidden: int
    intermediate: int
    layers: int
    later_norm: LaterNorm | None
    attention: GroupedShape | LatentShape
    captured: int
    input_norm: bool
    fc_norm: bool
    fc_bias: bool
    activation: str
    rms_eps: float
    rope: Rope
    max_positions: int | None
    norm_before_residual: bool
    feedback: Feedback
    vocab: int
    draft_vocab: int
    vocab_map: VocabMap
    embedding: Ownership
    head: Ownership

    @property
    def captured_width(self) -> int:
        """Width of the concatenated captured states."""
        return self.captured * self.target_hidden

    @classmethod
    def of(cls, spec: Eagle3Spec) -> DraftShape:
        """Read a spec; UnsupportedError names the fact that is out of reach."""
        later_norm = spec.later_norm.value
        if spec.num_layers.value > 1 and later_norm is None:
            raise UnsupportedError(
                f"a drafter with num_layers {spec.num_layers.value} whose later_norm is not known"
                " cannot be run"
            )
        fused = spec.conditioning if isinstance(spec.conditioning, Fused) else None
        return cls(
            hidden=spec.hidden_size.value,
            target_hidden=spec.target_hidden_size.value,
            intermediate=spec.intermediate_size.value,
            layers=spec.num_layers.value,
            later_norm=later_norm,
            attention=_attention(spec.attention),
            captured=fused.count.value if fused else 0,
            input_norm=fused.input_norm.value if fused else False,
            fc_norm=fused.fc_norm.value if fused else False,
            fc_bias=fused.bias.value if fused else False,
            activation=spec.activation.value,
            rms_eps=spec.rms_norm_eps.value,
            rope=spec.rope.value,
            max_positions=spec.max_position_embeddings.value,
            norm_before_residual=spec.norm_before_residual.value,
            feedback=spec.feedback.value,
            vocab=spec.vocab_size.value,
            draft_vocab=spec.draft_vocab_size.value,
            vocab_map=spec.vocab_map.value,
            embedding=spec.embedding.value,
            head=spec.head.value,
        )


def _attention(attention: Mha | Mla) -> GroupedShape | LatentShape:
    if isinstance(attention, Mla):
        return LatentShape(
            heads=attention.num_heads.value,
            query_rank=attention.q_lora_rank.value,
            key_value_rank=attention.kv_lora_rank.value,
            nope=attention.qk_nope_head_dim.value,
            rope=attention.qk_rope_head_dim.value,
            value=attention.v_head_dim.value,
        )
    heads, kv_heads = attention.num_heads.value, attention.num_kv_heads.value
    if heads % kv_heads:
        raise UnsupportedError(
            f"num_heads {heads} is no multiple of num_kv_heads {kv_heads}, so no group is whole"
        )
    return GroupedShape(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=attention.head_dim.value,
        qkv_bias=attention.bias.value,
        qk_norm=attention.qk_norm.value,
    )
