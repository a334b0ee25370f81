"""The dialect of llama.cpp: a GGUF file of the architecture ``eagle3``.

Layer ids in ``target_layers`` (``extract_layers`` in older files) are the inputs of layers, so they
are boundaries. d2t holds absolute ids. Rows of q and k stand in llama.cpp's order, and weights may
be quantised (src/models/eagle3.cpp and conversion/llama.py of llama.cpp at 0274f0f).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from eyas.checkpoint import Checkpoint, Format, LongList
from eyas.checkpoint.gguf_rope import read_rope
from eyas.dialects.dialect import Maps
from eyas.dialects.flat import no_keys
from eyas.dialects.gguf_stating import INNER, OUTER, PREFIX, write
from eyas.dialects.keys import Keys, needed, or_absent
from eyas.dialects.ownership import read_embedding, read_head
from eyas.dialects.tensors import Tensors
from eyas.dialects.vocabulary import read_vocab_order
from eyas.spec import (
    Boundaries,
    DraftSpec,
    Eagle3Spec,
    Fact,
    Feedback,
    Fused,
    Mha,
    Recognised,
    Rope,
    VocabMap,
    absent,
    assumed,
    declared,
    inferred,
)

__all__ = ["keys", "maps", "name", "read", "recognise", "roles", "sorted_map", "write"]

name = "gguf"
keys = no_keys
maps: Maps = "d2t"
sorted_map = False

_KIND = "general.architecture"
_EAGLE3 = "eagle3"
_WHOSE = "llama.cpp's eagle3"
_TOKENS = "tokenizer.ggml.tokens"
_OUTER = {name: role for role, name in OUTER.items()}
_INNER = {name: role for role, name in INNER.items()}
_BLOCK = re.compile(r"blk\.(?P<index>\d{1,4})\.(?P<part>\w+)\.weight")


def recognise(checkpoint: Checkpoint) -> str | None:
    """The format."""
    if checkpoint.format is not Format.GGUF:
        return None
    return f"it is a GGUF file of the architecture {checkpoint.config.get(_KIND)!r}"


def roles(checkpoint: Checkpoint) -> Mapping[str, str]:
    """Tensor name → role; none for another architecture than eagle3."""
    if checkpoint.config.get(_KIND) != _EAGLE3:
        return {}
    found = {}
    for tensor in checkpoint.tensors:
        match = _BLOCK.fullmatch(tensor)
        if tensor in _OUTER:
            found[tensor] = _OUTER[tensor]
        elif match is not None and match["part"] in _INNER:
            found[tensor] = f"layers.{int(match['index'])}.{_INNER[match['part']]}.weight"
    return found


def read(checkpoint: Checkpoint) -> DraftSpec:
    """The drafter as llama.cpp computes it; another architecture is known by name alone."""
    kind = checkpoint.config.get(_KIND)
    if kind != _EAGLE3:
        return Recognised(
            name=f"{kind} in GGUF",
            why=f"{checkpoint.config_file} :: {_KIND} is {kind!r}",
            lacks="of GGUF files eyas reads the architecture eagle3 alone",
        )
    found = checkpoint.config.items()
    own = {k.removeprefix(PREFIX): v for k, v in found if k.startswith(PREFIX)}
    return _read_eagle3(
        checkpoint,
        Tensors.of(checkpoint, roles(checkpoint)),
        Keys(own, checkpoint.config_file, PREFIX),
    )


def _read_eagle3(checkpoint: Checkpoint, tensors: Tensors, own: Keys) -> Eagle3Spec:
    hidden_size = needed(
        own.size("embedding_length") or tensors.rows("norm.weight"), own.place("embedding_length")
    )
    target_hidden_size = own.size("target_hidden_size") or assumed(
        hidden_size.value, own.place("target_hidden_size"), whose=_WHOSE
    )
    vocab_size = needed(
        _tokens(checkpoint) or own.size("vocab_size") or tensors.rows("embed_tokens.weight"),
        own.place("vocab_size"),
    )
    draft_vocab_size = (
        tensors.rows("d2t")
        or tensors.rows("lm_head.weight")
        or assumed(vocab_size.value, checkpoint.place("d2t"), whose=_WHOSE)
    )
    form = VocabMap.ABSOLUTE if tensors.has("d2t") else VocabMap.IDENTITY
    boundaries, attention = _boundaries(own), _attention(tensors, own)
    positions = or_absent(own.size("context_length"), own.place("context_length"))
    return Eagle3Spec(
        hidden_size=hidden_size,
        target_hidden_size=target_hidden_size,
        intermediate_size=needed(
            own.size("feed_forward_length") or tensors.rows("layers.0.mlp.gate_proj.weight"),
            own.place("feed_forward_length"),
        ),
        num_layers=needed(tensors.layers() or own.size("block_count"), own.place("block_count")),
        later_norm=absent(own.place("block_count")),
        attention=attention,
        conditioning=Fused(
            boundaries=boundaries,
            count=_count(tensors, boundaries, target_hidden_size.value),
            input_norm=tensors.present("input_norm.weight") or _switch(own, "norm_before_fc"),
            fc_norm=assumed(False, checkpoint.place("fc_norm.0.weight"), whose=_WHOSE),
            bias=assumed(False, checkpoint.place("fc.bias"), whose=_WHOSE),
        ),
        activation=assumed("silu", own.place("activation"), whose=_WHOSE),
        rms_norm_eps=needed(
            own.number("attention.layer_norm_rms_epsilon"),
            own.place("attention.layer_norm_rms_epsilon"),
        ),
        rope=_rope(checkpoint, own, attention, positions),
        max_position_embeddings=positions,
        norm_before_residual=_switch(own, "norm_before_residual"),
        feedback=assumed(Feedback.PRE_NORM, own.place("norm_output"), whose=_WHOSE),
        vocab_size=vocab_size,
        draft_vocab_size=draft_vocab_size,
        vocab_map=inferred(form, checkpoint.place("d2t")),
        vocab_order=read_vocab_order(checkpoint, tensors.by_role, form),
        embedding=read_embedding(tensors),
        head=read_head(
            tensors,
            None,
            reduced=vocab_size.value != draft_vocab_size.value,
            place=checkpoint.place("d2t"),
        ),
        target_name=absent(own.place("target_name")),
    )


def _attention(tensors: Tensors, own: Keys) -> Mha:
    heads = needed(own.size("attention.head_count"), own.place("attention.head_count"))
    return Mha(
        num_heads=heads,
        num_kv_heads=own.size("attention.head_count_kv")
        or assumed(heads.value, own.place("attention.head_count_kv"), whose=_WHOSE),
        head_dim=needed(
            own.size("attention.key_length")
            or tensors.quotient("layers.0.self_attn.q_proj.weight", heads.value)
            or tensors.quotient("norm.weight", heads.value),
            own.place("attention.key_length"),
        ),
        bias=assumed(False, tensors.place("layers.0.self_attn.q_proj.bias"), whose=_WHOSE),
        qk_norm=assumed(False, tensors.place("layers.0.self_attn.q_norm.weight"), whose=_WHOSE),
    )


def _boundaries(own: Keys) -> Fact[Boundaries]:
    ids = own.integers("target_layers") or own.integers("extract_layers")
    found = needed(ids, own.place("target_layers"))
    return found.map(lambda ids: ids)


def _count(tensors: Tensors, boundaries: Fact[Boundaries], width: int) -> Fact[int]:
    columns = tensors.columns("fc.weight")
    if columns is not None and columns.value % width == 0:
        return columns.map(lambda inputs: inputs // width)
    return boundaries.map(lambda ids: len(ids) if isinstance(ids, tuple) else 3)


def _rope(
    checkpoint: Checkpoint, own: Keys, attention: Mha, positions: Fact[int | None]
) -> Fact[Rope]:
    rope = read_rope(
        checkpoint, PREFIX, head_dim=attention.head_dim.value, max_positions=positions.value
    )
    theta = own.number("rope.freq_base")
    if theta is None:
        return assumed(rope, own.place("rope.freq_base"), whose=_WHOSE)
    return declared(rope, theta.key)


def _switch(own: Keys, key: str) -> Fact[bool]:
    return own.flag(key) or assumed(False, own.place(key), whose=_WHOSE)


def _tokens(checkpoint: Checkpoint) -> Fact[int] | None:
    """The number of tokens of the target's tokenizer, which the file has a copy of."""
    tokens = checkpoint.config.get(_TOKENS)
    if isinstance(tokens, LongList):
        count = tokens.length
    else:
        count = len(tokens) if isinstance(tokens, list) else 0
    return inferred(count, f"{checkpoint.config_file} :: {_TOKENS}") if count else None
