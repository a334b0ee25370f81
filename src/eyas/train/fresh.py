"""A new drafter for a target: its spec and its starting weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from eyas.errors import UnsupportedError
from eyas.model.drafter import Drafter
from eyas.model.target import Target
from eyas.spec import (
    Eagle3Spec,
    Feedback,
    Fused,
    Mha,
    Ownership,
    Rope,
    VocabMap,
    VocabOrder,
    absent,
    boundaries_of,
    declared,
)
from eyas.spec.boundaries import DefaultBoundaries
from eyas.train.vocabulary import DraftVocabulary

CHOSEN = "chosen at training"
FIRST_NORM_SHARE = 0.25


def fresh_spec(target: Target, vocabulary: DraftVocabulary) -> Eagle3Spec:
    """Plain EAGLE-3 in the target's own sizes, over the default three boundaries."""
    sizes = target.sizes
    if sizes is None:
        raise UnsupportedError(
            f"the sizes of a drafter cannot be read from a target of `{target.facts.architecture}`"
        )
    boundaries = boundaries_of(DefaultBoundaries(), target.facts.num_layers)
    return Eagle3Spec(
        hidden_size=declared(target.facts.hidden_size, CHOSEN),
        target_hidden_size=declared(target.facts.hidden_size, CHOSEN),
        intermediate_size=declared(sizes.intermediate, CHOSEN),
        num_layers=declared(1, CHOSEN),
        later_norm=absent(CHOSEN),
        attention=Mha(
            num_heads=declared(sizes.heads, CHOSEN),
            num_kv_heads=declared(sizes.kv_heads, CHOSEN),
            head_dim=declared(sizes.head_dim, CHOSEN),
            bias=declared(False, CHOSEN),
            qk_norm=declared(False, CHOSEN),
        ),
        conditioning=Fused(
            boundaries=declared(boundaries, CHOSEN),
            count=declared(len(boundaries), CHOSEN),
            input_norm=declared(False, CHOSEN),
            fc_norm=declared(False, CHOSEN),
            bias=declared(False, CHOSEN),
        ),
        activation=declared("silu", CHOSEN),
        rms_norm_eps=declared(sizes.rms_eps, CHOSEN),
        rope=declared(Rope(theta=sizes.rope_theta, kind="default"), CHOSEN),
        max_position_embeddings=declared(sizes.max_positions, CHOSEN),
        norm_before_residual=declared(False, CHOSEN),
        feedback=declared(Feedback.PRE_NORM, CHOSEN),
        vocab_size=declared(target.facts.vocab_size, CHOSEN),
        draft_vocab_size=declared(len(vocabulary.ids), CHOSEN),
        vocab_map=declared(VocabMap.OFFSETS, CHOSEN),
        vocab_order=declared(VocabOrder.SORTED, CHOSEN),
        embedding=declared(Ownership.TARGET, CHOSEN),
        head=declared(Ownership.OWN, CHOSEN),
        target_name=declared(target.facts.name, CHOSEN),
    )


def fresh_drafter(
    target: Target, vocabulary: DraftVocabulary, *, captured_rms_C: Tensor, seed: int
) -> Drafter:
    """A float32 drafter whose head starts as the target's rows, and the rest at random.

    It is on the target's device, and starts the same on all of them.

    `captured_rms_C` are the root mean squares of the captured channels: fc starts by dividing
    each by its own, for a few of them would drown all others.
    """
    spec = fresh_spec(target, vocabulary)
    drafter = Drafter(spec, embedding=target.embedding_VH, head=target.head_VH)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in drafter.modules():
            if isinstance(module, nn.Linear):
                deviation = module.weight.shape[1] ** -0.5
                module.weight.normal_(0.0, deviation, generator=generator)
        drafter.fc.weight.div_(captured_rms_C)
        drafter.lm_head.weight.copy_(target.head_VH[vocabulary.ids_V])
        # small, so that the first logits are near uniform
        drafter.norm.weight.copy_(target.final_norm_H * FIRST_NORM_SHARE)
        drafter.d2t.copy_(vocabulary.d2t_V)
    return drafter.to(target.embedding_VH.device)
