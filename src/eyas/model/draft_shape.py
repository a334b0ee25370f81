"""The plain numbers of an Eagle3Spec that this version of eyas can compute with."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.errors import UnsupportedError
from eyas.spec import Eagle3Spec, Feedback, Fused, Mla, Ownership, VocabMap


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftShape:
    """Sizes and conventions of a one-layer drafter with grouped-query attention.

    `captured` is the number of captured states that fc fuses, or 0 when fc never runs.
    """

    hidden: int
    target_hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool
    captured: int
    input_norm: bool
    fc_norm: bool
    fc_bias: bool
    rms_eps: float
    rope_theta: float
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
        """Read a spec; UnsupportedError names the first fact that is out of reach."""
        attention = spec.attention
        if isinstance(attention, Mla):
            raise UnsupportedError("a drafter with latent attention (MLA) cannot be run yet")
        refuse_if(spec.num_layers.value != 1, f"{spec.num_layers.value} decoder layers")
        refuse_if(attention.qk_norm.value, "norms on queries and keys")
        refuse_if(spec.activation.value != "silu", f"activation `{spec.activation.value}`")
        rope = spec.rope.value
        refuse_if(rope.kind != "default", f"rotary scaling `{rope.kind}`")
        fused = spec.conditioning if isinstance(spec.conditioning, Fused) else None
        return cls(
            hidden=spec.hidden_size.value,
            target_hidden=spec.target_hidden_size.value,
            intermediate=spec.intermediate_size.value,
            heads=attention.num_heads.value,
            kv_heads=attention.num_kv_heads.value,
            head_dim=attention.head_dim.value,
            qkv_bias=attention.bias.value,
            captured=fused.count.value if fused else 0,
            input_norm=fused.input_norm.value if fused else False,
            fc_norm=fused.fc_norm.value if fused else False,
            fc_bias=fused.bias.value if fused else False,
            rms_eps=spec.rms_norm_eps.value,
            rope_theta=rope.theta,
            norm_before_residual=spec.norm_before_residual.value,
            feedback=spec.feedback.value,
            vocab=spec.vocab_size.value,
            draft_vocab=spec.draft_vocab_size.value,
            vocab_map=spec.vocab_map.value,
            embedding=spec.embedding.value,
            head=spec.head.value,
        )


def refuse_if(condition: bool, what: str) -> None:
    """Raise UnsupportedError for a drafter that has `what`."""
    if condition:
        raise UnsupportedError(f"a drafter with {what} cannot be run yet")
