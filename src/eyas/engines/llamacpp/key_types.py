"""The types in which llama.cpp asks for the keys of an eagle3 file: another type raises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eyas.checkpoint import Checkpoint
from eyas.engines.llamacpp import claims
from eyas.engines.stop import Refused
from eyas.spec import Claim, Stage

PREFIX = "eagle3."
NO_VOCABULARY = ("no_vocab", "none")
_UINT16, _UINT32, _INT32, _FLOAT32, _BOOL, _TEXT, _LIST = 2, 4, 5, 6, 7, 8, 9  # GGUF's numbers
_NAMES = {0: "u8", 1: "i8", 2: "u16", 3: "i16", 4: "u32", 5: "i32", 6: "f32", 7: "bool"} | {
    8: "str",
    9: "arr",
    10: "u64",
    11: "i64",
    12: "f64",
}

_OF_FILES = {
    "general.architecture": _TEXT,
    "general.name": _TEXT,
    "general.file_type": _UINT32,
    "split.count": _UINT16,
    "tokenizer.ggml.model": _TEXT,
    "tokenizer.ggml.pre": _TEXT,
    "tokenizer.ggml.token_type_count": _UINT32,
}
_SIZES = (
    "context_length embedding_length embedding_length_out block_count nextn_predict_layers"
    " pooling_type classifier.pooling_type expert_count expert_group_count"
    " expert_group_used_count rope.scaling.original_context_length target_hidden_size"
    " attention.key_length_swa attention.value_length_swa rope.dimension_count_swa"
)
_OF_HEADS = "attention.key_length attention.value_length rope.dimension_count"
_NUMBERS = (
    "attention.layer_norm_rms_epsilon rope.freq_base rope.scaling.factor rope.scaling.attn_factor"
    " rope.scaling.alpha"
)
_SWITCHES = "norm_before_residual norm_before_fc attention.causal rope.scaling.finetuned"
# A number, or a list with one for each layer.
EACH = (
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "expert_used_count",
)
_OF_LAYERS = (_UINT32, _INT32, _BOOL)
_IDS = (_UINT32, _INT32)
_TOKENIZER = "tokenizer.ggml."
_TOKENIZER_IDS = (
    "bos eos eot eom unknown seperator padding mask fim_pre fim_suf fim_mid fim_pad fim_rep fim_sep"
    " prefix suffix middle"
)
_TOKENIZER_SWITCHES = (
    "add_bos_token add_eos_token add_sep_token add_space_prefix remove_extra_whitespaces"
    " normalizer.lowercase normalizer.strip_accents"
)
_TOKENIZER_LISTS: Mapping[str, tuple[int, ...]] = {
    "tokens": (_TEXT,),
    "scores": (_INT32, _FLOAT32),
    "token_type": (_INT32,),
    "suppress_tokens": (_INT32,),
}


def require_types(checkpoint: Checkpoint) -> None:
    """Refuse a key that is looked at and has another type than is asked for.

    Of a checkpoint that has no types nothing is known.
    """
    types = checkpoint.key_types
    for key, wanted in _scalars(checkpoint):
        if key in types and types[key][0] != wanted:
            raise _other(checkpoint, key, _NAMES[wanted], claims.KEY_TYPES)
    for bare in EACH:
        key = PREFIX + bare
        kind, of = types.get(key, (_UINT32, None))
        if kind not in (_UINT32, _LIST) or (kind == _LIST and of not in _OF_LAYERS):
            raise _other(checkpoint, key, "u32", claims.KEY_TYPES)
    key = f"{PREFIX}target_layers"
    if key in types and (types[key][0] != _LIST or types[key][1] not in _IDS):
        raise _other(checkpoint, key, "a list of u32 or i32", claims.EAGLE3_KEYS)
    if not _has_tokens(checkpoint):
        return
    for bare, elements in _TOKENIZER_LISTS.items():
        key = _TOKENIZER + bare
        if key in types and (types[key][0] != _LIST or types[key][1] not in elements):
            words = " or ".join(_NAMES[kind] for kind in elements)
            raise _other(checkpoint, key, f"a list of {words}", claims.TOKENIZER_KEYS)


def listed(checkpoint: Checkpoint, key: str) -> bool:
    """Whether `key` is a list of texts, as far as its type is known."""
    return checkpoint.key_types.get(key, (_LIST, _TEXT)) == (_LIST, _TEXT)


def _scalars(checkpoint: Checkpoint) -> Iterator[tuple[str, int]]:
    """The keys that are read as one value, and their types."""
    yield from _OF_FILES.items()
    heads = checkpoint.config.get(f"{PREFIX}attention.head_count", 0)
    sizes = _SIZES if heads in (0, [0]) else f"{_SIZES} {_OF_HEADS}"
    for names, kind in ((sizes, _UINT32), (_NUMBERS, _FLOAT32), (_SWITCHES, _BOOL)):
        yield from ((PREFIX + name, kind) for name in names.split())
    yield f"{PREFIX}rope.scaling.type", _TEXT
    if f"{PREFIX}rope.scaling.factor" not in checkpoint.config:
        yield f"{PREFIX}rope.scale_linear", _FLOAT32
    if not _has_tokens(checkpoint):
        yield f"{PREFIX}vocab_size", _UINT32
        return
    yield from ((f"{_TOKENIZER}{name}_token_id", _UINT32) for name in _TOKENIZER_IDS.split())
    yield from ((_TOKENIZER + name, _BOOL) for name in _TOKENIZER_SWITCHES.split())


def _has_tokens(checkpoint: Checkpoint) -> bool:
    return checkpoint.config.get(f"{_TOKENIZER}model") not in NO_VOCABULARY


def _other(checkpoint: Checkpoint, key: str, wanted: str, claim: Claim) -> Refused:
    kind, of = checkpoint.key_types[key]
    found = _NAMES[kind] if of is None else f"a list of {_NAMES[of]}"
    return Refused(
        Stage.CONFIG,
        f"{checkpoint.config_file} :: {key} is of type {found}, and must be {wanted}",
        claim,
    )
