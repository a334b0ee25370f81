"""The EAGLE-3 drafter that vLLM computes, as facts."""

from __future__ import annotations

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.capture import target_width
from eyas.engines.spec_of import (
    embedding_of,
    grouped_attention,
    head_of,
    spec_of,
    vocab_map_of,
)
from eyas.engines.stop import Refused
from eyas.engines.vllm import claims
from eyas.engines.vllm.architecture import DraftClass
from eyas.engines.vllm.drafter import Drafter
from eyas.spec import (
    Eagle3Spec,
    Fused,
    LastState,
    LaterNorm,
    Stage,
    Unfused,
    assumed,
)


def own_embedding(checkpoint: Checkpoint) -> bool:
    """Whether the checkpoint has an embedding, as vLLM tells: by a part of a name."""
    return any("embed_tokens" in name and "t2d" not in name for name in checkpoint.tensors)


def own_head(checkpoint: Checkpoint) -> bool:
    """Whether the checkpoint has a head, told the same way."""
    return any("lm_head" in name and "t2d" not in name for name in checkpoint.tensors)


def eagle3_spec(
    checkpoint: Checkpoint,
    drafter: Drafter,
    conditioning: Fused | LastState | Unfused,
    target: TargetFacts | None,
    *,
    runner: str,
) -> Eagle3Spec:
    """What is computed with `drafter` once the target's matrices are shared."""
    config = drafter.config
    names = checkpoint.tensors
    map_name = next((n for n in reversed(tuple(names)) if "d2t" in n and "t2d" not in n), None)
    own = own_embedding(checkpoint) or (runner == "v1" and not _same_width(drafter, target))
    attention = (
        grouped_attention(
            drafter.sizes,
            config,
            bias=drafter.qkv_bias,
            qk_norm=drafter.built is DraftClass.QWEN3,
        )
        if drafter.latent is None
        else drafter.latent
    )
    return spec_of(
        config=config,
        sizes=drafter.sizes,
        conditioning=conditioning,
        later_norm=LaterNorm.INPUT_LAYERNORM,
        attention=attention,
        rope=drafter.rope,
        norm_before_residual=drafter.norm_before_residual,
        feedback=drafter.feedback,
        vocab_map=vocab_map_of(
            checkpoint,
            map_name,
            drafter.sizes,
            whose=config.whose,
            identity=not drafter.maps_ids,
        ),
        embedding=embedding_of(
            checkpoint,
            own=own,
            key=checkpoint.place("embed_tokens.weight"),
            whose=config.whose,
        ),
        head=head_of(
            checkpoint,
            assumed(False, config.key("tie_word_embeddings"), whose=config.whose),
            from_target=not own_head(checkpoint),
            key=checkpoint.place("lm_head.weight"),
            whose=config.whose,
        ),
        target=target,
    )


def require_embedding(
    checkpoint: Checkpoint, drafter: Drafter, target: TargetFacts | None, runner: str
) -> None:
    """Refuse a shared embedding of another width, which the V1 runner leaves unshared."""
    if runner == "v2" and not own_embedding(checkpoint) and not _same_width(drafter, target):
        hidden, wide = drafter.sizes.hidden_size, target_width(drafter.sizes, target)
        raise Refused(
            Stage.FIRST_REQUEST,
            f"the checkpoint has no embed_tokens, the target's is {wide} wide, and {hidden.key} is"
            f" {hidden.value}",
            claims.EMBEDDING_V2,
        )


def _same_width(drafter: Drafter, target: TargetFacts | None) -> bool:
    return target_width(drafter.sizes, target) == drafter.sizes.hidden_size.value
