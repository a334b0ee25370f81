"""The tokenizer's keys of a GGUF drafter, which are its target's.

What llama.cpp uses of them in an eagle3 drafter is the number of tokens: it is the number of rows
of a head without d2t and the width of the logits otherwise (src/models/eagle3.cpp:44-55, 307-320),
and what the sampler goes over (common/sampling.cpp:138-157). The file is not loaded without a
tokenizer that its loader knows, the merges of a BPE included (src/llama-vocab.cpp:1945-2010), nor
with a token twice (2541). No text but a line feed goes through it (2566-2600): drafts are ids, and
draft-eagle3 does not compare the vocabularies as draft-simple does (common/speculative.cpp:67-129,
242). All at 0c1e57098.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eyas.checkpoint.gguf import GgufValue, read_typed
from eyas.checkpoint.json_file import read_json_object
from eyas.checkpoint.place import GGUF_SUFFIX
from eyas.checkpoint.target import TargetFacts
from eyas.errors import ConversionError, TargetNeededError

_PREFIX = "tokenizer."
_TOKENS = f"{_PREFIX}ggml.tokens"
_HINT = "name the target's GGUF: --target target.gguf"
_MAX_BYTES = 64 * 2**20
_MOST_TOKENS = 2**24  # the largest vocabulary in use has some 2**18
_STRING, _ARRAY, _INT32 = 8, 9, 5  # GGUF's types by number
_NORMAL, _CONTROL, _USER_DEFINED, _UNUSED = 1, 3, 4, 5  # llama.cpp's types of tokens
_SPECIAL = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}
_SWITCHES = ("add_bos_token", "add_eos_token")
# The regular expressions by which a tokenizer cuts texts, and llama.cpp's names of them
# (src/llama-vocab.cpp:277-520).
_CUT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CUTS = {_CUT % "{1,3}": "llama-bpe", _CUT % "": "qwen2"}


def tokenizer_keys(target: TargetFacts, vocab_size: int) -> dict[str, GgufValue]:
    """The keys ``tokenizer.*`` of `target`, for a drafter that was trained for `vocab_size` tokens.

    Those of a GGUF file as they are; of a directory they are made from a tokenizer.json with
    byte-level BPE, ids that have no token being named and marked as unused, as llama.cpp's
    converter does (conversion/base.py:1581-1623). Raises TargetNeededError for any other tokenizer,
    since the target's GGUF would tell it, and ConversionError for another number of tokens.
    """
    if target.location.endswith(GGUF_SUFFIX):
        keys = read_typed(target.directory, Path(target.location).name, _PREFIX)
        tokens = keys.get(_TOKENS)
        count = len(tokens.value) if tokens is not None and tokens.of == _STRING else 0
        if count != vocab_size:
            raise _other_size(target, count, vocab_size)
        return keys
    return _of_directory(target, vocab_size)


def _of_directory(target: TargetFacts, vocab_size: int) -> dict[str, GgufValue]:
    directory = target.directory
    if not (directory / "tokenizer.json").is_file():
        raise TargetNeededError(f"{target.location} has no tokenizer.json", hint=_HINT)
    content = _read(directory / "tokenizer.json")
    model = content.get("model")
    vocabulary = model.get("vocab") if isinstance(model, Mapping) else None
    if not isinstance(model, Mapping) or not isinstance(vocabulary, Mapping):
        raise TargetNeededError(f"{target.location} has a tokenizer that is no BPE", hint=_HINT)
    pre = _pre(content, model)
    if pre is None:
        raise TargetNeededError(
            f"{target.location} cuts texts in a way that eyas has no name of llama.cpp's for",
            hint=_HINT,
        )
    tokens, kinds = _tokens(target, vocabulary, content.get("added_tokens"), vocab_size)
    return {
        f"{_PREFIX}ggml.model": GgufValue(value="gpt2", kind=_STRING),
        f"{_PREFIX}ggml.pre": GgufValue(value=pre, kind=_STRING),
        _TOKENS: GgufValue(value=tokens, kind=_ARRAY, of=_STRING),
        f"{_PREFIX}ggml.token_type": GgufValue(value=kinds, kind=_ARRAY, of=_INT32),
        f"{_PREFIX}ggml.merges": GgufValue(value=_merges(target, model), kind=_ARRAY, of=_STRING),
        **_specials(directory, tokens),
    }


def _pre(content: Mapping[str, Any], model: Mapping[str, Any]) -> str | None:
    """llama.cpp's name of the way in which texts are cut; None for one that is not known here."""
    if model.get("type") != "BPE" or model.get("byte_fallback"):
        return None
    pre = _cut_of(_parts(content.get("pre_tokenizer")))
    normalizer = content.get("normalizer")
    kind = normalizer.get("type") if isinstance(normalizer, Mapping) else normalizer
    # Qwen normalises to NFC, which llama.cpp leaves out under its name.
    return pre if kind is None or (kind, pre) == ("NFC", "qwen2") else None


def _cut_of(parts: list[Mapping[str, Any]]) -> str | None:
    kinds = [part.get("type") for part in parts]
    if kinds == ["ByteLevel"] and parts[0].get("use_regex", True):
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and parts[0].get("individual_digits"):
        return "smollm"
    pattern = parts[0].get("pattern") if kinds == ["Split", "ByteLevel"] else None
    text = pattern.get("Regex") if isinstance(pattern, Mapping) else None
    return _CUTS.get(text) if isinstance(text, str) else None


def _parts(cutter: object) -> list[Mapping[str, Any]]:
    if not isinstance(cutter, Mapping):
        return []
    inner = cutter.get("pretokenizers") if cutter.get("type") == "Sequence" else [cutter]
    return [part for part in inner if isinstance(part, Mapping)] if isinstance(inner, list) else []


def _tokens(
    target: TargetFacts, vocabulary: Mapping[str, Any], added: object, vocab_size: int
) -> tuple[list[str], list[int]]:
    """The token of each id, and its type."""
    found: dict[int, tuple[str, int]] = {
        i: (text, _NORMAL) for text, i in vocabulary.items() if isinstance(i, int)
    }
    for entry in added if isinstance(added, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), int):
            kind = _CONTROL if entry.get("special") else _USER_DEFINED
            found[entry["id"]] = (str(entry.get("content")), kind)
    if not found or min(found) < 0 or max(found) >= vocab_size or vocab_size > _MOST_TOKENS:
        raise _other_size(target, max(found, default=-1) + 1, vocab_size)
    listed = [found.get(i, (f"[PAD{i}]", _UNUSED)) for i in range(vocab_size)]
    tokens = [text for text, _ in listed]
    if len(set(tokens)) != len(tokens):
        raise ConversionError(f"{target.location} has one token under two ids", hint=_HINT)
    return tokens, [kind for _, kind in listed]


def _merges(target: TargetFacts, model: Mapping[str, Any]) -> list[str]:
    """The merges, each two parts with a space between; newer files keep the two apart."""
    listed = model.get("merges")
    merges = []
    for merge in listed if isinstance(listed, list) else ():
        pair = merge.split(" ") if isinstance(merge, str) else merge
        # Byte-level BPE spells a space as another letter, so that none is in a part.
        if not isinstance(pair, list) or len(pair) != 2 or any(" " in str(p) for p in pair):
            raise ConversionError(f"{target.location} has the merge {merge!r:.60}", hint=_HINT)
        merges.append(f"{pair[0]} {pair[1]}")
    if not merges:
        raise ConversionError(f"{target.location} has a BPE without merges", hint=_HINT)
    return merges


def _specials(directory: Path, tokens: list[str]) -> dict[str, GgufValue]:
    """The ids of special tokens, and what is added to a text, as tokenizer_config.json says."""
    if not (directory / "tokenizer_config.json").is_file():
        return {}
    config = _read(directory / "tokenizer_config.json")
    ids = {token: i for i, token in enumerate(tokens)}
    keys = {}
    for said, name in _SPECIAL.items():
        token = config.get(said)
        text = token.get("content") if isinstance(token, Mapping) else token
        if isinstance(text, str) and text in ids:
            keys[f"{_PREFIX}ggml.{name}"] = GgufValue(value=ids[text], kind=4)
    for said in _SWITCHES:
        if isinstance(config.get(said), bool):
            keys[f"{_PREFIX}ggml.{said}"] = GgufValue(value=config[said], kind=7)
    if isinstance(config.get("chat_template"), str):
        keys[f"{_PREFIX}chat_template"] = GgufValue(value=config["chat_template"], kind=_STRING)
    return keys


def _read(path: Path) -> dict[str, Any]:
    return read_json_object(path, hint="fetch or export the tokenizer again", max_bytes=_MAX_BYTES)


def _other_size(target: TargetFacts, count: int, vocab_size: int) -> ConversionError:
    return ConversionError(
        f"the drafter was trained for {vocab_size} tokens, and {target.location} has {count}",
        hint="check that --target is the model that the drafter was trained for",
    )
