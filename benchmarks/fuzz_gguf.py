"""A mutant as a GGUF file: its config as keys, its tensors as ggml's, soundly or with lies.

4 bytes  GGUF, then the version, the number of tensors, the number of keys
keys     name, type, value; texts behind their length, lists behind their type and length
tensors  name, number of sizes, sizes (the fastest first), type, offset
…        padding to the alignment, and the tensors, each padded to it
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from random import Random
from typing import Any

from benchmarks.fuzz_files import RawFile
from benchmarks.fuzz_mutations import Mutant
from benchmarks.fuzz_specimens import Specimen, Tensor

FILE = "draft.gguf"
_ALIGNMENT = 32
_TYPES = {"F32": 0, "F16": 1, "I8": 24, "I16": 25, "I32": 26, "I64": 27, "F64": 28, "BF16": 30}
_UNKNOWN = 77
_BYTES = {"F32": 4, "F16": 2, "I8": 1, "I16": 2, "I32": 4, "I64": 8, "F64": 8, "BF16": 2}


def specimen(target: Any) -> Specimen:
    """A drafter as llama.cpp's converter writes it, with the key that eyas adds."""
    keys: dict[str, Any] = {
        "general.architecture": "eagle3",
        "general.name": "tiny",
        "tokenizer.ggml.tokens": [f"t{i}" for i in range(32)],
        "eagle3.target_layers": [2, 6, 9],
        "eagle3.target_hidden_size": 8,
        "eagle3.norm_before_residual": True,
        "eagle3.norm_before_fc": False,
        "eagle3.block_count": 1,
        "eagle3.embedding_length": 8,
        "eagle3.feed_forward_length": 12,
        "eagle3.context_length": 512,
        "eagle3.attention.head_count": 2,
        "eagle3.attention.head_count_kv": 1,
        "eagle3.attention.key_length": 4,
        "eagle3.attention.layer_norm_rms_epsilon": 1e-5,
        "eagle3.rope.freq_base": 10000.0,
        "eagle3.rope.scaling.type": "yarn",
        "eagle3.rope.scaling.factor": 4.0,
        "eagle3.rope.scaling.original_context_length": 512,
        "eyas.rope_parameters": '{"rope_theta": 10000.0, "rope_type": "yarn", "factor": 4.0,'
        ' "original_max_position_embeddings": 512, "beta_fast": 32}',
    }
    block = {
        "attn_norm": (8,),
        "attn_norm_2": (8,),
        "attn_q": (8, 16),
        "attn_k": (4, 16),
        "attn_v": (4, 16),
        "attn_output": (8, 8),
        "ffn_norm": (8,),
        "ffn_gate": (12, 8),
        "ffn_up": (12, 8),
        "ffn_down": (8, 12),
    }
    shapes: dict[str, tuple[int, ...]] = {"fc": (8, 24), "output_norm": (8,), "output": (16, 8)}
    shapes |= {f"blk.0.{name}": shape for name, shape in block.items()}
    tensors: dict[str, Tensor] = {
        f"{n}.weight": ("F16", shape, None) for n, shape in shapes.items()
    }
    tensors["d2t"] = ("I64", (16,), struct.pack("<16q", *range(0, 32, 2)))
    return Specimen(name="GGUF", config=keys, tensors=tensors, target=target, file=FILE)


def encode(mutant: Mutant, dice: Random, *, damaged: bool) -> RawFile:
    """The GGUF file of `mutant`; a value or a type that GGUF lacks is left out or unknown."""
    keys = [raw for key, value in mutant.config.items() for raw in _key(key, value)]
    if damaged and keys and dice.random() < 0.2:
        keys.append(dice.choice(keys))
    infos, data, at = [], bytearray(), 0
    for name, (dtype, shape, raw) in mutant.tensors:
        size = math.prod(shape) * _BYTES.get(dtype, 1)
        offset = (
            at if not damaged or dice.random() < 0.95 else dice.choice((0, at + 1, 2**63, at * 2))
        )
        number = _TYPES.get(dtype, _UNKNOWN)
        sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        infos.append(_text(name) + sizes + struct.pack("<IQ", number, offset))
        if raw is not None and len(raw) == size:
            data.extend(bytes(at - len(data)))
            data.extend(raw)
        at += -(-size // _ALIGNMENT) * _ALIGNMENT
    counts = [len(infos), len(keys)]
    version = 3
    if damaged and dice.random() < 0.3:
        counts[dice.randrange(2)] = dice.choice((0, 1, 65536, 2**40, 2**64 - 1))
    elif damaged and dice.random() < 0.2:
        version = dice.choice((0, 1, 2, 4, 3 << 24))
    head = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(keys) + b"".join(infos)
    head += bytes(-len(head) % _ALIGNMENT)
    return RawFile(head=head + bytes(data), size=len(head) + at)


def _text(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(raw)) + raw


def _key(key: str, value: Any) -> Iterator[bytes]:
    """The bytes of one key, or none where GGUF has no such value."""
    found = _value(value)
    if found is not None:
        kind, raw = found
        yield _text(key) + struct.pack("<I", kind) + raw


def _value(value: Any) -> tuple[int, bytes] | None:
    if isinstance(value, bool):
        return 7, bytes([value])
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return 12, struct.pack("<d", value)
    if isinstance(value, str):
        return 8, _text(value)
    if isinstance(value, list):
        return _list(value)
    return None


def _integer(value: int) -> tuple[int, bytes] | None:
    if 0 <= value < 2**32:
        return 4, struct.pack("<I", value)
    if -(2**63) <= value < 2**63:
        return 11, struct.pack("<q", value)
    return (10, struct.pack("<Q", value)) if 0 <= value < 2**64 else None


def _list(values: list[Any]) -> tuple[int, bytes] | None:
    """A list of the kind of its first element; others are left out."""
    found = [pair for pair in map(_value, values) if pair is not None]
    kind = found[0][0] if found else 4
    alike = [raw for other, raw in found if other == kind]
    return 9, struct.pack("<IQ", kind, len(alike)) + b"".join(alike)
