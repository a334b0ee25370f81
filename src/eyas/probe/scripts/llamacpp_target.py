"""A target for llama.cpp that is as wide, as deep and as large as a given one, of holes.

What an eagle3 drafter takes from its target are states of a width, an embedding and a head, so that
attention and feed-forward are as small as they can be. Only Llama's class is stood in for: whether
another keeps the inputs of its layers is its own graph's business.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import NamedTuple

_CLASS = "LlamaForCausalLM"
_ALIGNMENT = 32
_UINT32, _FLOAT32, _STRING, _ARRAY = 4, 6, 8, 9  # GGUF's types of values by number
_F32, _F16 = 0, 1  # ggml's types of tensors by number
_BYTES = {_F32: 4, _F16: 2}
_WIDTH = 2  # of its one head, and of its feed-forward
_MOST = 2**20  # layers or tokens
_SIZES = ("hidden_size", "num_hidden_layers", "vocab_size")


class Target(NamedTuple):
    """A file that stands in for a target, and the number of its tokens."""

    path: Path
    tokens: int


def write_target(directory: Path, path: Path) -> Target | None:
    """The stand-in for the config.json in `directory` as file `path`; None where there is none."""
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    if (config.get("architectures") or [None])[0] != _CLASS:
        return None
    sizes = [config.get(name) for name in _SIZES]
    if not all(isinstance(size, int) and 0 < size < _MOST for size in sizes):
        return None
    hidden, layers, tokens = sizes
    keys = _keys(hidden, layers, tokens)
    tensors = _tensors(hidden, layers, tokens, tied=bool(config.get("tie_word_embeddings")))
    infos, at = b"", 0
    for name, (kind, shape) in tensors.items():
        infos += _text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        infos += struct.pack("<IQ", kind, at)
        elements = shape[0] * (shape[1] if shape[1:] else 1)
        at += _padded(elements * _BYTES[kind])
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys) + infos
    with path.open("wb") as file:
        file.write(head)
        file.truncate(_padded(len(head)) + at)
    return Target(path, tokens)


def _keys(hidden: int, layers: int, tokens: int) -> list[bytes]:
    sizes = {
        "context_length": 4096,
        "embedding_length": hidden,
        "block_count": layers,
        "feed_forward_length": _WIDTH,
        "attention.head_count": 1,
        "attention.head_count_kv": 1,
        "attention.key_length": _WIDTH,
        "attention.value_length": _WIDTH,
        "rope.dimension_count": _WIDTH,
    }
    return [
        _key("general.architecture", _STRING, _text("llama")),
        *(_key(f"llama.{k}", _UINT32, struct.pack("<I", v)) for k, v in sizes.items()),
        _key("llama.attention.layer_norm_rms_epsilon", _FLOAT32, struct.pack("<f", 1e-5)),
        _key("tokenizer.ggml.model", _STRING, _text("gpt2")),
        _key("tokenizer.ggml.pre", _STRING, _text("gpt-2")),
        _key("tokenizer.ggml.tokens", _ARRAY, _texts([f"t{i}" for i in range(tokens)])),
        _key("tokenizer.ggml.merges", _ARRAY, _texts(["t 0"])),
    ]


def _tensors(
    hidden: int, layers: int, tokens: int, *, tied: bool
) -> dict[str, tuple[int, tuple[int, ...]]]:
    found: dict[str, tuple[int, ...]] = {"token_embd": (tokens, hidden), "output_norm": (hidden,)}
    if not tied:
        found["output"] = (tokens, hidden)
    for index in range(layers):
        block: dict[str, tuple[int, ...]] = {f"attn_{part}": (_WIDTH, hidden) for part in "qkv"}
        block |= {"attn_norm": (hidden,), "ffn_norm": (hidden,)}
        block |= {"attn_output": (hidden, _WIDTH), "ffn_down": (hidden, _WIDTH)}
        block |= {"ffn_gate": (_WIDTH, hidden), "ffn_up": (_WIDTH, hidden)}
        found |= {f"blk.{index}.{name}": shape for name, shape in block.items()}
    return {f"{name}.weight": (_F16 if shape[1:] else _F32, shape) for name, shape in found.items()}


def _key(name: str, kind: int, value: bytes) -> bytes:
    return _text(name) + struct.pack("<I", kind) + value


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _texts(texts: list[str]) -> bytes:
    return struct.pack("<IQ", _STRING, len(texts)) + b"".join(map(_text, texts))


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
