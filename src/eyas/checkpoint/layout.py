"""The safetensors file layout, for writing tensors without holding them all in memory.

The library's own serialiser needs every tensor in memory at once, and cannot leave holes. The
bytes made here equal its own (a test compares them), and every file written is read back.

    8 bytes   length N of the header, little-endian
    N bytes   JSON: __metadata__, then name → {dtype, shape, data_offsets}, padded with spaces to 8
    …         the tensors, wider types first and then by name, without gaps
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from eyas.checkpoint.header import DTYPE_BITS, tensor_nbytes
from eyas.errors import CheckpointError

WHOLE = "model.safetensors"
METADATA = {"format": "pt"}  # transformers refuses a file without it


def lay_out(
    tensors: Mapping[str, tuple[str, tuple[int, ...]]],
) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """The length prefix and header of `tensors` (name → dtype, shape), and their byte ranges.

    A range is the first byte and the one after the last, counted from the start of the file.
    Raises CheckpointError for a type, shape or name that the format cannot hold.
    """
    header: dict[str, object] = {"__metadata__": METADATA}
    relative: dict[str, tuple[int, int]] = {}
    offset = 0
    for name in _order(tensors):
        dtype, shape = tensors[name]
        if any(size < 0 for size in shape) or not name.isprintable() or name == "__metadata__":
            raise CheckpointError(f"tensor {name!r} with shape {shape} cannot be written")
        stop = offset + tensor_nbytes(dtype, shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, stop]}
        relative[name] = (offset, stop)
        offset = stop
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    begin = 8 + len(text)
    ranges = {name: (begin + start, begin + stop) for name, (start, stop) in relative.items()}
    return len(text).to_bytes(8, "little") + text, ranges


def split(sizes: Mapping[str, int], shard_bytes: int | None = None) -> dict[str, list[str]]:
    """The files, by name, that hold the tensors `sizes` (name → bytes), each in one of them.

    A file has at most `shard_bytes` bytes of tensors, or a single tensor that has more; without
    `shard_bytes`, or where one file will do, it is model.safetensors. Tensors keep their order, and
    so split as huggingface_hub splits them (2.0, serialization/_base.py).
    """
    shards: list[list[str]] = []
    current: list[str] = []
    room = shard_bytes
    for name, nbytes in sizes.items():
        if shard_bytes is not None and nbytes > shard_bytes:
            shards.append([name])
            continue
        if room is not None and shard_bytes is not None:
            if nbytes > room:
                shards.append(current)
                current, room = [], shard_bytes
            room -= nbytes
        current.append(name)
    if current or not shards:
        shards.append(current)
    if len(shards) == 1:
        return {WHOLE: shards[0]}
    return {f"model-{i:05}-of-{len(shards):05}.safetensors": s for i, s in enumerate(shards, 1)}


def _order(tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> list[str]:
    # The library orders by its own enumeration of types, descending, then by name.
    rank = {dtype: place for place, dtype in enumerate(DTYPE_BITS)}
    return sorted(tensors, key=lambda name: (-rank.get(tensors[name][0], 0), name.encode()))
