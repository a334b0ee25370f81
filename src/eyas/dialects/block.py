"""Reading DFlash and DSpark: drafters that fill a block of masked tokens in one pass.

Producers keep the same facts in different places: speculators around a nested layer config, z-lab
and SpecForge in ``dflash_config``, DeepSpec at the top level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eyas.checkpoint import Checkpoint
from eyas.dialects.attention import read_attention
from eyas.dialects.keys import Keys, first, needed, or_absent
from eyas.dialects.names import BLOCK_OUTER, roles_of
from eyas.dialects.ownership import read_embedding, read_head
from eyas.dialects.rope import read_rope
from eyas.dialects.tensors import Tensors
from eyas.dialects.unread import LAYER_KEYS
from eyas.dialects.vocabulary import read_vocab_map, read_vocab_order, read_vocab_sizes
from eyas.errors import CheckpointError
from eyas.spec import (
    Confidence,
    DFlashSpec,
    Fact,
    Markov,
    assumed,
    declared,
    inferred,
)

SECTION = "dflash_config"
BLOCK_KEYS = frozenset(
    {
        "block_size",
        "confidence_head_with_markov",
        "draft_vocab_size",
        "enable_confidence_head",
        "is_causal",
        "layer_types",
        "markov_head_type",
        "markov_rank",
        "mask_token_id",
        "max_window_layers",
        "num_target_layers",
        "sample_from_anchor",
        "sliding_window",
        "target_hidden_size",
        "target_layer_ids",
        "use_sliding_window",
    }
)
KEYS: Mapping[str, frozenset[str]] = {
    "": LAYER_KEYS | BLOCK_KEYS,
    SECTION: BLOCK_KEYS | {"attention_mode", "projector_type"},
}
_QWEN3_CONFIG = "transformers' Qwen3Config"
_SLIDING = "sliding_attention"
MARKOV = "markov_head.markov_w1.weight"
_CONFIDENCE = "confidence_head.proj.weight"
# Early DSpark files of SpecForge keep the heads one level down.
_HEADS = "logit_head."


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSource:
    """Where one dialect keeps the facts of a block drafter, and whose defaults fill the rest.

    `layer` holds the decoder layer's keys, `own` the sections that may hold the drafter's own, in
    order of precedence. `causal` makes the layers in which a token of the block sees no later one
    from those that slide; `anchored` says whether the anchor drafts where no key does, and
    `usual_block` how long a block is then, where the producer has a default.
    """

    tensors: Tensors
    layer: Keys
    own: tuple[Keys, ...]
    boundaries: Fact[tuple[int, ...] | None]
    causal: Callable[[Fact[frozenset[int]]], Fact[frozenset[int]]]
    anchored: bool
    usual_block: int | None
    target_name: Fact[str | None]
    whose: str

    def integer(self, key: str) -> Fact[int] | None:
        """The whole number in the first section that has it."""
        return first(section.integer(key) for section in self.own)

    def size(self, key: str) -> Fact[int] | None:
        """The number of at least 1 in the first section that has it."""
        return first(section.size(key) for section in self.own)

    def flag(self, key: str) -> Fact[bool] | None:
        """The flag in the first section that has it."""
        return first(section.flag(key) for section in self.own)

    def text(self, key: str) -> Fact[str] | None:
        """The text in the first section that has it."""
        return first(section.text(key) for section in self.own)

    def place(self, key: str) -> str:
        """Where the key would be."""
        return self.own[-1].place(key)


def keys(checkpoint: Checkpoint) -> Mapping[str, frozenset[str]]:
    """What reading looks at where the facts are in `dflash_config` and at the top."""
    return KEYS


def roles(checkpoint: Checkpoint) -> Mapping[str, str]:
    """Tensor name → role."""
    bare = {name: name.removeprefix(_HEADS) for name in checkpoint.tensors}
    found = roles_of(bare.values(), BLOCK_OUTER)
    return {name: found[short] for name, short in bare.items() if short in found}


def shows_block(checkpoint: Checkpoint) -> bool:
    """Whether the tensors are a block drafter's: one hidden_norm after fc, and none in a layer."""
    found = set(roles(checkpoint).values())
    return {"fc.weight", "hidden_norm.weight"} <= found and (
        "layers.0.hidden_norm.weight" not in found
    )


def read_block(source: BlockSource) -> DFlashSpec:
    """The drafter as trained; raises CheckpointError when a size cannot be known."""
    tensors, layer = source.tensors, source.layer
    hidden_size = needed(
        layer.size("hidden_size") or tensors.rows("norm.weight") or tensors.rows("fc.weight"),
        layer.place("hidden_size"),
    )
    target_hidden_size = source.size("target_hidden_size") or assumed(
        hidden_size.value, source.place("target_hidden_size"), whose=source.whose
    )
    num_layers = needed(
        tensors.layers() or layer.size("num_hidden_layers"), layer.place("num_hidden_layers")
    )
    sliding = _sliding_layers(layer, num_layers.value)
    window = layer.size("sliding_window") if sliding.value else None
    vocab_size, draft_vocab_size = read_vocab_sizes(
        tensors, layer, source.own[-1], whose=source.whose
    )
    vocab_map = read_vocab_map(
        tensors.checkpoint, dict(tensors.by_role), vocab_size.value, draft_vocab_size.value
    )
    return DFlashSpec(
        hidden_size=hidden_size,
        target_hidden_size=target_hidden_size,
        intermediate_size=needed(
            layer.size("intermediate_size") or tensors.rows("layers.0.mlp.gate_proj.weight"),
            layer.place("intermediate_size"),
        ),
        num_layers=num_layers,
        attention=read_attention(tensors, layer, hidden_size.value),
        boundaries=source.boundaries,
        count=_count(source, target_hidden_size.value),
        sliding_layers=sliding,
        sliding_window=or_absent(window, layer.place("sliding_window")),
        causal_layers=source.causal(sliding),
        block_size=_block_size(source),
        mask_token_id=or_absent(source.integer("mask_token_id"), source.place("mask_token_id")),
        sample_from_anchor=source.flag("sample_from_anchor")
        or assumed(source.anchored, source.place("sample_from_anchor"), whose=source.whose),
        markov=_markov(source),
        confidence=_confidence(source),
        activation=layer.text("hidden_act")
        or assumed("silu", layer.place("hidden_act"), whose=_QWEN3_CONFIG),
        rms_norm_eps=layer.number("rms_norm_eps")
        or assumed(1e-6, layer.place("rms_norm_eps"), whose=_QWEN3_CONFIG),
        rope=read_rope(layer, theta=10000.0, whose=_QWEN3_CONFIG),
        max_position_embeddings=or_absent(
            layer.size("max_position_embeddings"), layer.place("max_position_embeddings")
        ),
        vocab_size=vocab_size,
        draft_vocab_size=draft_vocab_size,
        vocab_map=vocab_map,
        vocab_order=read_vocab_order(tensors.checkpoint, tensors.by_role, vocab_map.value),
        embedding=read_embedding(tensors),
        head=read_head(
            tensors,
            layer.flag("tie_word_embeddings"),
            reduced=vocab_size.value != draft_vocab_size.value,
            place=source.place("draft_vocab_size"),
        ),
        target_name=source.target_name,
    )


def _block_size(source: BlockSource) -> Fact[int | None]:
    place = source.place("block_size")
    stated = source.size("block_size")
    if stated is None and source.usual_block is not None:
        return assumed(source.usual_block, place, whose=source.whose)
    return or_absent(stated, place)


def _count(source: BlockSource, target_hidden_size: int) -> Fact[int | None]:
    columns = source.tensors.columns("fc.weight")
    if columns is not None and columns.value % target_hidden_size == 0:
        return columns.map(lambda width: width // target_hidden_size)
    stated = source.boundaries
    return stated.map(lambda boundaries: None if boundaries is None else len(boundaries))


def _sliding_layers(layer: Keys, count: int) -> Fact[frozenset[int]]:
    kinds, place = layer.values.get("layer_types"), layer.place("layer_types")
    if kinds is None:
        return _configured_to_slide(layer, count)
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise CheckpointError(f"{place} is no list of kinds", hint="correct the config")
    return declared(frozenset(i for i, kind in enumerate(kinds) if kind == _SLIDING), place)


def _configured_to_slide(layer: Keys, count: int) -> Fact[frozenset[int]]:
    """Without layer_types: from max_window_layers on, if use_sliding_window is true."""
    place = layer.place("layer_types")
    on, first = layer.flag("use_sliding_window"), layer.integer("max_window_layers")
    if on is None or not on.value or layer.size("sliding_window") is None:
        return assumed(frozenset(), place, whose=_QWEN3_CONFIG)
    start = 28 if first is None else first.value
    return assumed(frozenset(range(start, count)), place, whose=_QWEN3_CONFIG)


def _markov(source: BlockSource) -> Markov | None:
    rank = source.integer("markov_rank")
    shown = source.tensors.columns(MARKOV)
    if shown is None and (rank is None or rank.value == 0):
        return None
    return Markov(
        rank=needed(shown or rank, source.place("markov_rank")),
        kind=source.text("markov_head_type")
        or assumed("vanilla", source.place("markov_head_type"), whose=source.whose),
    )


def _confidence(source: BlockSource) -> Confidence | None:
    enabled = source.flag("enable_confidence_head")
    shown = source.tensors.columns(_CONFIDENCE)
    if shown is None and (enabled is None or not enabled.value):
        return None
    hidden = source.tensors.rows("norm.weight")
    if shown is not None and hidden is not None:
        return Confidence(with_markov=inferred(shown.value > hidden.value, shown.key))
    key = "confidence_head_with_markov"
    return Confidence(
        with_markov=source.flag(key) or assumed(True, source.place(key), whose=source.whose)
    )
