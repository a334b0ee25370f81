"""Tensor headers of a safetensors file, checked before anything relies on them.

The library's own reader wants the whole file at hand, and imports numpy; a header that came over
the network is a few kilobytes of a file that is not here.

    8 bytes   length N of the header, little-endian
    N bytes   JSON: __metadata__, and name → {dtype, shape, data_offsets}
    …         the tensors, in the order of their offsets and without gaps
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeGuard

from eyas.checkpoint.json_file import json_object
from eyas.checkpoint.regular import regular_file
from eyas.errors import CheckpointError, reason_of

PREFIX = 8  # bytes that state the length of the header
MAX_HEADER = 100_000_000  # the safetensors library reads none that is longer
_WORD = 2**64
# Names in use have some 100; what looks at every prefix of a name takes their square.
_LONGEST_NAME = 512
_REPAIR = "fetch or export the file again"

# Bits for each element, by the name that the safetensors format gives a type.
DTYPE_BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}

# torch's names of the types that a drafter computes in.
TORCH_NAMES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorHeader:
    """What a file says of one tensor.

    `dtype` is the safetensors name ("BF16", "I64", "BOOL"), `file` the file's name in its
    directory, `start` the position of its first byte there (None for a header without a file).
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str
    nbytes: int
    start: int | None = None


def tensor_nbytes(dtype: str, shape: tuple[int, ...]) -> int:
    """The number of bytes of a tensor; raises CheckpointError for an unknown type."""
    bits = DTYPE_BITS.get(dtype)
    if bits is None:
        raise CheckpointError(
            f"{dtype!r} is no tensor type that eyas knows",
            hint="export the tensor in a type of the safetensors format",
        )
    return prod(shape) * bits // 8


def read_headers(directory: Path, file: str) -> dict[str, TensorHeader]:
    """The headers of `file` in `directory`, in the order of their bytes.

    Raises CheckpointError for a file that is not sound, as `parse_headers` says.
    """
    path = regular_file(directory, file)
    try:
        size = path.stat().st_size
        with path.open("rb") as raw:
            text = raw.read(header_length(raw.read(PREFIX), size=size, where=str(path)))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {reason_of(error)}", hint=_REPAIR) from None
    return parse_headers(text, file=file, size=size, where=str(path))


def header_length(prefix: bytes, *, size: int, where: str, most: int = MAX_HEADER) -> int:
    """The length of the header that the first 8 bytes of a file of `size` bytes announce.

    Raises CheckpointError where the file cannot hold it, or where it has more than `most` bytes.
    """
    if size < PREFIX or len(prefix) < PREFIX:
        raise CheckpointError(
            f"{where} has {size} bytes, too few for a safetensors file", hint=_REPAIR
        )
    length = int.from_bytes(prefix, "little")
    if length > size - PREFIX:
        raise _unsound(where, f"a header of {length} bytes does not fit into its {size} bytes")
    if length > most:
        raise _unsound(where, f"a header of {length} bytes is longer than {most}")
    return length


def parse_headers(text: bytes, *, file: str, size: int, where: str) -> dict[str, TensorHeader]:
    """The headers that `text` spells for `file` of `size` bytes, in the order of their bytes.

    As strict as the safetensors library, which engines load with: a test holds the two side by
    side. Raises CheckpointError for text that is not JSON of the format, and for offsets that
    overlap, leave gaps, disagree with types and shapes, or do not end where the file ends.
    """
    entries = json_object(text, where=f"the header of {where}", hint=_REPAIR)
    metadata = entries.pop("__metadata__", None)
    if metadata is not None and not _is_text_table(metadata):
        raise _unsound(where, "its __metadata__ is no table of texts")
    begin = PREFIX + len(text)
    headers = [
        _header(name, entry, begin=begin, file=file, where=where) for name, entry in entries.items()
    ]
    headers.sort(key=lambda header: (header.start, header.nbytes))
    position = begin
    for header in headers:
        if header.start != position:
            raise _unsound(where, f"the bytes of {header.name!r:.80} overlap others or leave a gap")
        position += header.nbytes
    if position != size:
        raise CheckpointError(
            f"{where} has {size} bytes where its header accounts for {position}", hint=_REPAIR
        )
    return {header.name: header for header in headers}


def require_name(name: str, where: str) -> None:
    """Raises CheckpointError for a name that breaks lines or is longer than any in use."""
    if not name.isprintable():
        raise CheckpointError(
            f"{where} names a tensor with control characters: {name[:80]!r}", hint=_REPAIR
        )
    if len(name) > _LONGEST_NAME:
        raise CheckpointError(
            f"{where} names a tensor in {len(name)} characters: {name[:40]!r}…", hint=_REPAIR
        )


def _header(name: str, entry: Any, *, begin: int, file: str, where: str) -> TensorHeader:
    require_name(name, where)
    fields = entry if isinstance(entry, dict) else {}
    dtype, shape, offsets = (fields.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise _unsound(where, f"{name[:80]!r} has the type {str(dtype)[:40]!r}, which is none")
    if not _is_counts(shape) or not _is_counts(offsets) or len(offsets) != 2:
        raise _unsound(where, f"{name[:80]!r} has no shape or offsets of whole numbers")
    start, stop = offsets
    if _bits(dtype, shape) != 8 * (stop - start):
        raise _unsound(where, f"{name[:80]!r} spans {stop - start} bytes, not its shape's")
    return TensorHeader(
        name=name,
        dtype=dtype,
        shape=tuple(shape),
        file=file,
        nbytes=stop - start,
        start=begin + start,
    )


def _bits(dtype: str, shape: list[int]) -> int:
    bits = DTYPE_BITS[dtype]
    for size in shape:
        bits *= size
        if bits >= 8 * _WORD:  # the library refuses as well, and a long product takes for ever
            return -1
    return bits


def _is_counts(value: Any) -> TypeGuard[list[int]]:
    if not isinstance(value, list) or not {*map(type, value)} <= {int}:
        return False
    return not value or (min(value) >= 0 and max(value) < _WORD)


def _is_text_table(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    texts = [*value, *value.values()]
    if not all(isinstance(text, str) for text in texts):
        return False
    return not any("\ud800" <= char <= "\udfff" for text in texts for char in text)


def _unsound(where: str, reason: str) -> CheckpointError:
    return CheckpointError(f"{where} is not a sound safetensors file: {reason}", hint=_REPAIR)
