"""The facts of an Eagle3Spec that both engines derive alike."""

from __future__ import annotations

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.config import ConfigView
from eyas.engines.sizes import Sizes
from eyas.spec import (
    Eagle3Spec,
    Fact,
    Feedback,
    Fused,
    LastState,
    LaterNorm,
    Mha,
    Mla,
    Origin,
    Ownership,
    Rope,
    Unfused,
    VocabMap,
    absent,
    assumed,
    inferred,
)


def spec_of(
    *,
    config: ConfigView,
    sizes: Sizes,
    conditioning: Fused | LastState | Unfused,
    attention: Mha | Mla,
    rope: Fact[Rope],
    later_norm: LaterNorm,
    norm_before_residual: Fact[bool],
    feedback: Fact[Feedback],
    vocab_map: Fact[VocabMap],
    embedding: Fact[Ownership],
    head: Fact[Ownership],
    target: TargetFacts | None,
) -> Eagle3Spec:
    """The drafter that an engine computes; `later_norm` is what its layers after the first call."""
    many = sizes.num_layers.value > 1
    layers = sizes.num_layers.key
    return Eagle3Spec(
        hidden_size=sizes.hidden_size,
        target_hidden_size=sizes.target_hidden_size,
        intermediate_size=sizes.intermediate_size,
        num_layers=sizes.num_layers,
        later_norm=assumed(later_norm, layers, whose=config.whose) if many else absent(layers),
        attention=attention,
        conditioning=conditioning,
        activation=config.text("hidden_act"),
        rms_norm_eps=config.real("rms_norm_eps"),
        rope=rope,
        max_position_embeddings=_max_position(config),
        norm_before_residual=norm_before_residual,
        feedback=feedback,
        vocab_size=sizes.vocab_size,
        draft_vocab_size=sizes.draft_vocab_size,
        vocab_map=vocab_map,
        vocab_order=absent(vocab_map.key),  # an engine maps by the numbers, in whatever order
        embedding=embedding,
        head=head,
        target_name=_target_name(target),
    )


def grouped_attention(
    sizes: Sizes, config: ConfigView, *, bias: Fact[bool], qk_norm: bool = False
) -> Mha:
    """Multi-head attention of a class that norms queries and keys, or does not."""
    return Mha(
        num_heads=sizes.num_heads,
        num_kv_heads=sizes.num_kv_heads,
        head_dim=sizes.head_dim,
        bias=bias,
        qk_norm=assumed(qk_norm, config.key("architectures"), whose=config.whose),
    )


def _target_name(target: TargetFacts | None) -> Fact[str | None]:
    key = "command line :: target"
    if target is None:
        return Fact(value=None, origin=Origin.ABSENT, key=key)
    return Fact(value=target.location, origin=Origin.DECLARED, key=key)


def _max_position(config: ConfigView) -> Fact[int | None]:
    name = "max_position_embeddings"
    if config.get(name) is None and name not in config.defaults:
        return Fact(value=None, origin=Origin.ABSENT, key=config.key(name))
    return config.whole(name).map(lambda positions: positions)


def vocab_map_of(
    checkpoint: Checkpoint,
    tensor: str | None,
    sizes: Sizes,
    *,
    whose: str,
    identity: bool | None = None,
) -> Fact[VocabMap]:
    """How draft ids become target ids when `tensor` is the map that the engine takes.

    `identity` says whether the vocabularies agree; None compares those of the config.
    """
    if tensor is not None:
        return inferred(VocabMap.OFFSETS, checkpoint.place(tensor))
    if identity is None:
        identity = sizes.draft_vocab_size.value == sizes.vocab_size.value
    if identity:
        return Fact(
            value=VocabMap.IDENTITY,
            origin=sizes.draft_vocab_size.origin,
            key=sizes.draft_vocab_size.key,
            whose=sizes.draft_vocab_size.whose,
        )
    return assumed(VocabMap.PREFIX, checkpoint.place("d2t"), whose=whose)


def embedding_of(checkpoint: Checkpoint, *, own: bool, key: str, whose: str) -> Fact[Ownership]:
    """Whose embedding is used; `key` is the config key that decides."""
    if not own:
        return assumed(Ownership.TARGET, key, whose=whose)
    name = _ending(checkpoint, "embed_tokens.weight")
    return inferred(Ownership.OWN, checkpoint.place(name or "embed_tokens.weight"))


def head_of(
    checkpoint: Checkpoint,
    tied: Fact[bool],
    *,
    from_target: bool,
    key: str,
    whose: str,
) -> Fact[Ownership]:
    """Whose head is used."""
    if tied.value:
        return tied.map(lambda _: Ownership.TIED)
    if from_target:
        return assumed(Ownership.TARGET, key, whose=whose)
    name = _ending(checkpoint, "lm_head.weight")
    return inferred(Ownership.OWN, checkpoint.place(name or "lm_head.weight"))


def _ending(checkpoint: Checkpoint, name: str) -> str | None:
    return next((t for t in checkpoint.tensors if t == name or t.endswith(f".{name}")), None)
