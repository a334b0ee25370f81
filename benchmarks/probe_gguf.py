"""Sound drafters as small GGUF files, as eyas's own converter writes them, and damaged ones.

4 bytes  GGUF, then the version, the number of tensors, the number of keys
keys     name, type, value; texts behind their length, lists behind their type and length
tensors  name, number of sizes, sizes (the fastest first), type, offset
…        padding to the alignment, and the tensors, each padded to it
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fuzz_specimens import Frame, Specimen, Tensor, specimens

from eyas.checkpoint import open_checkpoint, open_target, write_sparse
from eyas.checkpoint.gguf import GgufValue, read_typed
from eyas.convert import Wishes, convert, parse_goal
from eyas.errors import ConversionError

FILE = "draft.gguf"
# ggml's types of tensors: number, elements in a block, bytes in a block (ggml-common.h).
DTYPES = {
    "F32": (0, 1, 4),
    "F16": (1, 1, 2),
    "Q4_0": (2, 32, 18),
    "Q8_0": (8, 32, 34),
    "I8": (24, 1, 1),
    "I16": (25, 1, 2),
    "I32": (26, 1, 4),
    "I64": (27, 1, 8),
    "F64": (28, 1, 8),
    "BF16": (30, 1, 2),
}
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q"} | {
    12: "d"
}
STRING, ARRAY = 8, 9
_ALIGNMENT = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """A drafter as a GGUF file has it, and the config of a target that it fits."""

    name: str
    keys: Mapping[str, GgufValue]
    tensors: Mapping[str, Tensor]
    target: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufMutant:
    """A damaged drafter: its keys and tensors, and the names that its file has twice."""

    number: int
    what: str
    keys: Mapping[str, GgufValue]
    tensors: Mapping[str, Tensor]
    target: Mapping[str, Any]
    twice: tuple[str, ...] = ()
    method: str | None = None
    runner: str | None = None

    def write(self, directory: Path) -> Path:
        """The drafter as a file in `directory`, zeros for weights."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / FILE
        path.write_bytes(_encoded(self))
        return path


def sound_gguf_drafters(workplace: Path) -> list[Drafter]:
    """What the converter makes for llama.cpp of the small specimens, and of others like them."""
    found = []
    for index, original in enumerate(_convertible(workplace)):
        place = workplace / f"gguf-{index}"
        draft = write_sparse(
            place / "draft",
            original.config,
            {name: (dtype, shape) for name, (dtype, shape, _) in original.tensors.items()},
            {name: data for name, (_, _, data) in original.tensors.items() if data is not None},
        )
        target = _target(place / "target", original.target)
        try:
            convert(
                open_checkpoint(draft, weights=True),
                place / FILE,
                parse_goal("llamacpp"),
                target=open_target(target),
                wishes=Wishes(),
            )
        except ConversionError:  # it computes what llama.cpp does not
            continue
        written = open_checkpoint(place / FILE)
        tensors = {
            name: (t.dtype, t.shape, written.read_bytes(name))
            for name, t in written.tensors.items()
        }
        keys = read_typed(place, FILE, "")
        found.append(
            Drafter(name=original.name, keys=keys, tensors=tensors, target=original.target)
        )
    return found


def _convertible(workplace: Path) -> Iterator[Specimen]:
    """The small specimens in their own dialect, and shapes that none of them has."""
    found = [s for s in specimens(workplace / "specimens") if " as " not in s.name]
    yield from (s for s in found if not s.name.startswith(("large", "native")))
    tiny, wide = Frame(), Frame(hidden=32, inner=64, heads=2, head_dim=16)
    target, ids = tiny.target("LlamaForCausalLM"), tiny.vocab_map()

    def specimen(name: str, frame: Frame, tensors: Mapping[str, Tensor], **config: Any) -> Specimen:
        beside = frame.target("LlamaForCausalLM") if name != "narrow" else target
        tensors = frame.tensors() | ids | tensors
        return Specimen(name=name, config=frame.config() | config, tensors=tensors, target=beside)

    norm: dict[str, Tensor] = {"input_norm.weight": ("BF16", (24,), None)}
    yield specimen("normed residual", tiny, {}, norm_before_residual=True)
    yield specimen("normed inputs", tiny, norm, norm_before_fc=True)
    yield specimen("wide", wide, {}, norm_before_residual=True)
    yield specimen("llama3", tiny, {}, rope_parameters=_LLAMA3)
    yield specimen("yarn", tiny, {}, rope_parameters=_YARN)
    own: dict[str, Tensor] = {
        "embed_tokens.weight": ("BF16", (32, 4), None),
        "fc.weight": ("BF16", (4, 24), None),
    }
    narrow = Frame(hidden=4, inner=12, heads=1)
    yield specimen("narrow", narrow, own, target_hidden_size=8)


_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}
_YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 2.0,
    "original_max_position_embeddings": 256,
}


def _target(directory: Path, config: Mapping[str, Any]) -> Path:
    """A target's directory: its config, and a byte-level BPE with fewer tokens than it has ids."""
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps(config))
    tokenizer = {
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]},
        "pre_tokenizer": {"type": "ByteLevel", "use_regex": True},
    }
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    return directory


def _encoded(made: GgufMutant) -> bytes:
    keys = [_key(name, value) for name, value in made.keys.items()]
    keys += [_key(name, made.keys[name]) for name in made.twice if name in made.keys]
    listed = list(made.tensors.items())
    listed += [(name, made.tensors[name]) for name in made.twice if name in made.tensors]
    infos, data = b"", bytearray()
    for name, (dtype, shape, raw) in listed:
        sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        number, block, width = DTYPES[dtype]
        infos += _text(name) + sizes + struct.pack("<IQ", number, len(data))
        size = math.prod(shape) // block * width
        data += ((raw or b"") + bytes(size))[:size]
        data += bytes(-len(data) % _ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(keys)) + b"".join(keys) + infos
    return head + bytes(-len(head) % _ALIGNMENT) + bytes(data)


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _key(name: str, value: GgufValue) -> bytes:
    start = _text(name) + struct.pack("<I", value.kind)
    if value.kind != ARRAY:
        return start + _scalar(value.kind, value.value)
    assert value.of is not None
    items = b"".join(_scalar(value.of, item) for item in value.value)
    return start + struct.pack("<IQ", value.of, len(value.value)) + items


def _scalar(kind: int, value: Any) -> bytes:
    return _text(value) if kind == STRING else struct.pack("<" + SCALARS[kind], value)
