"""Tensor headers of a pickle that torch.save wrote (pytorch_model.bin), without running it.

The archive holds a small pickle, data.pkl, that describes a table of tensors, and the numbers of
each storage as they are, in a record of their own (torch/serialization.py of torch 2.13). So a
tensor is a range of bytes in the file, as one of safetensors is.

The pickle is a program. It is followed as data: see `pickled_program`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from shlex import quote
from typing import Any, BinaryIO

from eyas.checkpoint.header import DTYPE_BITS, TensorHeader, require_name
from eyas.checkpoint.pickled_archive import (
    Read,
    StoredRecord,
    is_archive,
    read_records,
    read_text,
)
from eyas.checkpoint.pickled_program import (
    MAX_PROGRAM,
    PARAMETER,
    TENSOR,
    TYPED_TENSOR,
    Call,
    Name,
    Storage,
    follow,
    unsound,
)
from eyas.checkpoint.regular import regular_file
from eyas.errors import CheckpointError, reason_of

_REPAIR = "fetch or export the file again"
_WORD = 2**63
_MOST_DIMENSIONS = 64
_VERSIONS = range(1, 11)  # caffe2/serialize/versions.h: what torch 2.13 reads
# What torch before 1.6 wrote: the pickle of a magic number comes first.
_OLD_FORMAT = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_UNTYPED = "torch.storage.UntypedStorage"

# The names of the safetensors format for what torch calls a storage, or a type.
_STORAGES = {
    "torch.DoubleStorage": "F64",
    "torch.FloatStorage": "F32",
    "torch.HalfStorage": "F16",
    "torch.BFloat16Storage": "BF16",
    "torch.LongStorage": "I64",
    "torch.IntStorage": "I32",
    "torch.ShortStorage": "I16",
    "torch.CharStorage": "I8",
    "torch.ByteStorage": "U8",
    "torch.BoolStorage": "BOOL",
    "torch.ComplexFloatStorage": "C64",
}
_TYPES = {
    "torch.float8_e4m3fn": "F8_E4M3",
    "torch.float8_e5m2": "F8_E5M2",
    "torch.float8_e8m0fnu": "F8_E8M0",
    "torch.float8_e4m3fnuz": "F8_E4M3FNUZ",
    "torch.float8_e5m2fnuz": "F8_E5M2FNUZ",
    "torch.uint16": "U16",
    "torch.uint32": "U32",
    "torch.uint64": "U64",
}
_KNOWN = {**_STORAGES, **_TYPES, _UNTYPED: "bytes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A file whose pickle was followed: its records, and how it is named to a reader."""

    file: str
    where: str
    records: Mapping[str, StoredRecord]


def read_pickled(directory: Path, file: str) -> dict[str, TensorHeader]:
    """The headers of the tensors in the torch archive `file` of `directory`, as it orders them.

    Nothing of the pickle is imported or called. Raises CheckpointError for a file that is not
    sound, that holds anything but a table of plain tensors, or whose tensors are no runs of
    little-endian numbers.
    """
    path = regular_file(directory, file)
    try:
        size = path.stat().st_size
        with path.open("rb") as opened:
            return _headers(opened, size, file, str(path))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {reason_of(error)}", hint=_REPAIR) from None


def _headers(opened: BinaryIO, size: int, file: str, where: str) -> dict[str, TensorHeader]:
    def read(at: int, nbytes: int) -> bytes:
        if at >= size:  # perhaps further than a file can be
            return b""
        opened.seek(at)
        return opened.read(nbytes)

    _require_archive(read(0, len(_OLD_FORMAT)), where)
    records = read_records(read, size, where)
    _require_weights(records, read, where)
    program = records["data.pkl"]
    table = follow(read(program.start, program.nbytes), _KNOWN, where)
    if type(table) is not dict:
        raise CheckpointError(
            f"{where} holds {_kind(table)}, and a drafter is a table of tensors",
            hint="save its state_dict",
        )
    source = _Source(file=file, where=where, records=records)
    return {name: _header(name, value, source) for name, value in table.items()}


def _require_archive(head: bytes, where: str) -> None:
    if is_archive(head):
        return
    if head == _OLD_FORMAT:
        raise CheckpointError(
            f"{where} is in the format of torch before 1.6, which eyas does not read",
            hint=_saved_again(where, ""),
        )
    raise CheckpointError(
        f"{where} is no archive that torch.save writes, and was not opened further",
        hint="save the drafter as model.safetensors",
    )


def _require_weights(records: Mapping[str, StoredRecord], read: Read, where: str) -> None:
    if "constants.pkl" in records:
        raise CheckpointError(
            f"{where} is a TorchScript program, and no table of tensors",
            hint="save the state_dict of the model that it was made from",
        )
    if "data.pkl" not in records:
        raise CheckpointError(f"{where} has no data.pkl, so it holds no weights", hint=_REPAIR)
    version = read_text(read, records.get(".data/version", records.get("version")), where)
    if version is None or version.strip() not in {str(number) for number in _VERSIONS}:
        raise CheckpointError(
            f"{where} is in version {version!r} of torch's format, and eyas reads 1 to 10",
            hint="save it again with another version of torch",
        )
    order = read_text(read, records.get("byteorder"), where)
    if order not in (None, "little"):  # torch before 2.1 did not say, and was little-endian
        raise CheckpointError(
            f"{where} holds numbers of the byte order {order!r}, and eyas reads little-endian ones",
            hint="save it again on a little-endian machine",
        )
    alignment = read_text(read, records.get(".storage_alignment"), where)
    if alignment is not None and not (alignment.isascii() and alignment.isdigit()):
        raise CheckpointError(
            f"{where} aligns its storages to {alignment!r}, which is no number", hint=_REPAIR
        )
    if records["data.pkl"].nbytes > MAX_PROGRAM:
        raise CheckpointError(
            f"{where} describes its tensors in {records['data.pkl'].nbytes} bytes, and eyas reads"
            f" {MAX_PROGRAM}",
            hint="check that it is the right file",
        )


def _header(name: Any, value: Any, source: _Source) -> TensorHeader:
    where = source.where
    if type(name) is not str:
        raise CheckpointError(
            f"{where} has an entry named {str(name)[:20]}, where weights have names",
            hint="save the drafter's state_dict alone",
        )
    require_name(name, where)
    if type(value) is Call and value.function == PARAMETER:
        value = value.arguments[0] if len(value.arguments) == 3 else None
    if type(value) is dict:
        raise _nested(name, value, where)
    if type(value) is not Call or value.function not in (TENSOR, TYPED_TENSOR):
        raise CheckpointError(
            f"{where} holds {_kind(value)} under {name[:80]!r}, among its tensors",
            hint="save the drafter's state_dict alone",
        )
    return _placed(name, value, source)


def _placed(name: str, call: Call, source: _Source) -> TensorHeader:
    """The header of the tensor that `call` builds: its type, shape and run of bytes."""
    where, arguments = source.where, list(call.arguments)
    typed = arguments.pop(6) if call.function == TYPED_TENSOR and len(arguments) > 6 else None
    if len(arguments) == 7 and arguments.pop():
        raise CheckpointError(
            f"{where} holds {name[:80]!r} as a view that conjugates or negates",
            hint="save the tensor with .resolve_conj().resolve_neg()",
        )
    if len(arguments) != 6 or type(arguments[0]) is not Storage:
        raise unsound(where, f"it builds {name[:80]!r} from what makes no tensor")
    storage, offset, shape, strides = arguments[:4]
    counts = _is_counts(shape) and _is_counts(strides) and _is_counts((offset,))
    if not counts or len(shape) != len(strides):
        raise unsound(where, f"{name[:80]!r} has no shape of whole numbers")
    dtype = _dtype(storage, typed, name, where)
    record = _record(storage, dtype if typed is None else "U8", name, source)
    elements, width = prod(shape), DTYPE_BITS[dtype] // 8
    if elements and not _is_contiguous(shape, strides):
        raise CheckpointError(
            f"{where} holds {name[:80]!r} as a view whose rows do not follow each other",
            hint="save the tensor with .contiguous()",
        )
    if (offset + elements) * width > record.nbytes:
        raise unsound(where, f"{name[:80]!r} reaches beyond its storage")
    return TensorHeader(
        name=name,
        dtype=dtype,
        shape=shape,
        file=source.file,
        nbytes=elements * width,
        start=record.start + offset * width,
    )


def _dtype(storage: Storage, typed: Any, name: str, where: str) -> str:
    kind = storage.identity[1]
    text = kind.text if type(kind) is Name else ""
    if typed is None and text in _STORAGES:
        return _STORAGES[text]
    if text == _UNTYPED and type(typed) is Name and typed.text in _TYPES:
        return _TYPES[typed.text]
    raise unsound(where, f"{name[:80]!r} has no type that its storage can hold")


def _record(storage: Storage, dtype: str, name: str, source: _Source) -> StoredRecord:
    """Where the bytes of `storage` lie, as many as it says."""
    key, count = storage.identity[2], storage.identity[4]
    record = source.records.get(f"data/{key}") if type(key) is str else None
    if record is None:
        raise unsound(source.where, f"the numbers of {name[:80]!r} are in no record")
    if not _is_counts((count,)) or count * (DTYPE_BITS[dtype] // 8) != record.nbytes:
        raise unsound(
            source.where, f"{name[:80]!r} has a record of {record.nbytes} bytes, not its own"
        )
    return record


def _nested(name: str, table: dict[Any, Any], where: str) -> CheckpointError:
    if not any(type(value) is Call for value in table.values()):
        return CheckpointError(
            f"{where} holds a table under {name[:80]!r}, among its tensors",
            hint="save the drafter's state_dict alone",
        )
    return CheckpointError(
        f"{where} keeps its tensors in a table under {name[:80]!r}, where engines look for none"
        " (SGLang loads nothing of it, without a word)",
        hint=_saved_again(where, f"[{name[:80]!r}]"),
    )


def _saved_again(where: str, part: str) -> str:
    """The command that saves `part` of a file anew, by torch's own restricted loader."""
    program = (
        "import sys, torch; f = sys.argv[1]; torch.save("
        f'torch.load(f, "cpu", weights_only=True){part}, f)'
    )
    return f"python -c {quote(program)} {quote(where)}"


def _is_counts(values: Any) -> bool:
    if type(values) is not tuple or len(values) > _MOST_DIMENSIONS:
        return False
    return all(type(value) is int and 0 <= value < _WORD for value in values)


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _kind(value: Any) -> str:
    if type(value) is Call:
        return "a tensor"
    if type(value) in (Name, Storage):
        return "a part of a tensor"
    names = {dict: "a table", list: "a list", tuple: "a tuple", str: "a text", bool: "a flag"}
    return names.get(type(value), "nothing" if value is None else "a number")
