"""A whole causal language model that drafts for a larger one with the same vocabulary.

Nothing but its use makes a model an assistant, so that this is what remains when no other dialect
knows a checkpoint, and a target is taken for one too.
"""

from __future__ import annotations

import re

from eyas.checkpoint import Checkpoint
from eyas.dialects.flat import no_keys, no_roles, unwritten
from eyas.dialects.keys import architectures
from eyas.spec import DraftSpec, Recognised

name = "assistant"
keys = no_keys
roles = no_roles
write = unwritten

_EMBEDDING = re.compile(r"(?:.+\.)?(?:embed_tokens|wte|word_embeddings|embed_in)\.weight")
_LAYER = re.compile(r"(?:.+\.)?(?:layers|h|blocks)\.(\d{1,4})\..+")


def recognise(checkpoint: Checkpoint) -> str | None:
    """A class for causal language models, an embedding and every layer that the config counts."""
    classes = [one for one in architectures(checkpoint.config) if one.endswith("ForCausalLM")]
    depth = checkpoint.config.get("num_hidden_layers")
    if not classes or not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
        return None
    matches = (_LAYER.fullmatch(name) for name in checkpoint.tensors)
    layers = {int(match[1]) for match in matches if match is not None}
    if not any(_EMBEDDING.fullmatch(name) for name in checkpoint.tensors):
        return None
    if not layers >= set(range(depth)):
        return None
    vocabulary = checkpoint.config.get("vocab_size")
    ids = f" and {vocabulary} ids" if isinstance(vocabulary, int) else ""
    return (
        f"it is a whole causal language model, {classes[0]}, with an embedding, {depth} layers{ids}"
    )


def read(checkpoint: Checkpoint) -> DraftSpec:
    """The name, and why it is that one."""
    return Recognised(
        name="draft model",
        why=recognise(checkpoint) or "nothing names it",
        lacks=(
            "eyas does not judge whole models that draft: their vocabulary must be the target's;"
            " if this is the target, it goes after --target"
        ),
    )
