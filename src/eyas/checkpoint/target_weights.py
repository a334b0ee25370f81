"""A target's embedding and head among its tensors."""

from __future__ import annotations

from eyas.checkpoint.checkpoint import Checkpoint, open_checkpoint
from eyas.checkpoint.header import TensorHeader
from eyas.checkpoint.target import TargetFacts
from eyas.errors import CheckpointError

# What targets call them, by the end of the name.
_EMBEDDINGS = (
    "embed_tokens.weight",
    "word_embeddings.weight",
    "tok_embeddings.weight",
    "wte.weight",
)
_HEADS = ("lm_head.weight", "embed_out.weight")


def embedding_of(facts: TargetFacts) -> tuple[Checkpoint, TensorHeader]:
    """The target's files and its embedding; raises CheckpointError where it has none at hand."""
    return _found(facts, _EMBEDDINGS, "embedding")


def head_of(facts: TargetFacts) -> tuple[Checkpoint, TensorHeader]:
    """The target's files and its head, which is its embedding where the two are tied.

    Raises CheckpointError where it has none at hand, or where it is not said whether they are tied.
    """
    if facts.tie_word_embeddings:
        return embedding_of(facts)
    return _found(facts, _HEADS, "head")


def _found(facts: TargetFacts, ends: tuple[str, ...], what: str) -> tuple[Checkpoint, TensorHeader]:
    target = open_checkpoint(facts.directory)
    found = [h for n, h in target.tensors.items() if n.endswith(ends) and len(h.shape) == 2]
    sized = [h for h in found if facts.hidden_size in (None, h.shape[1])]
    if len(sized) != 1:
        raise CheckpointError(
            f"{len(sized)} tensors of {facts.location} may be its {what}",
            hint="name the directory of the target with its weights",
        )
    return target, sized[0]
