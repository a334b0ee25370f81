"""Archives as torch.save writes them, built by hand so that they can lie, and pickles by parts."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

PICKLE = "pytorch_model.bin"
VERSION = {"version": b"3\n"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the directory, and a record's own header, say of it."""

    name: str
    data: bytes
    header: int = 0  # where its own header starts
    flags: int = 0
    method: int = 0
    packed: int | None = None
    nbytes: int | None = None
    disk: int = 0
    folder: bool = False
    own_name: str | None = None
    own_flags: int = 0
    long: bool = False  # with the numbers of the zip64 form


Lie = Callable[[Entry], Entry]


def pickle_weights(directory: Path) -> Path:
    """`directory`, its weights saved by torch in place of model.safetensors."""
    weights = directory / "model.safetensors"
    torch.save(load_file(weights), directory / PICKLE)
    weights.unlink()
    return directory


def honest(entry: Entry) -> Entry:
    """No lie."""
    return entry


def archive(
    records: Mapping[str, bytes],
    lie: Lie = honest,
    *,
    root: str = "archive",
    order: str | None = "little",
    zip64: bool = False,
    **end: int,
) -> bytes:
    """An archive of `records`; `lie` changes what is said of each, `end` what the end says."""
    named = dict(records) | VERSION
    if order is not None:
        named |= {"byteorder": order.encode()}
    raw, entries = bytearray(), []
    for name, data in named.items():
        entry = lie(Entry(name=f"{root}/{name}", data=data, header=len(raw), long=zip64))
        own = (entry.name if entry.own_name is None else entry.own_name).encode()
        fields = (0, entry.own_flags, 0, 0, 0, 0, len(data), len(data), len(own), 0)
        raw += b"PK\3\4" + struct.pack("<HHHHHIIIHH", *fields) + own + data
        entries.append(entry)
    begin = len(raw)
    raw += b"".join(map(_listed, entries))
    return bytes(raw) + tail(len(entries), begin, len(raw) - begin, zip64=zip64, **end)


def _listed(entry: Entry) -> bytes:
    nbytes = len(entry.data) if entry.nbytes is None else entry.nbytes
    packed = nbytes if entry.packed is None else entry.packed
    header, extra = entry.header, b""
    if entry.long:
        extra = struct.pack("<HHQQQ", 1, 24, nbytes, packed, header)
        nbytes = packed = header = 0xFFFFFFFF
    name = entry.name.encode()
    fields = (0, 0, entry.flags, entry.method, 0, 0, 0, packed, nbytes)
    more = (len(name), len(extra), 0, entry.disk, 0, 0x10 * entry.folder, header)
    return b"PK\1\2" + struct.pack("<HHHHHHIIIHHHHHII", *fields, *more) + name + extra


def tail(
    count: int,
    begin: int,
    length: int,
    *,
    zip64: bool = False,
    more: int = 0,
    further: int = 0,
    longer: int = 0,
    disks: int = 0,
    astray: int = 0,
) -> bytes:
    """The end of the directory, off by what is asked for."""
    at = begin + length + astray
    count, begin, length = count + more, begin + further, length + longer
    if not zip64:
        return b"PK\5\6" + struct.pack("<HHHHIIH", disks, disks, count, count, length, begin, 0)
    long = struct.pack("<QHHIIQQQQ", 44, 0, 0, disks, disks, count, count, length, begin)
    short = struct.pack("<HHHHIIH", 0, 0, *2 * [0xFFFF], *2 * [0xFFFFFFFF], 0)
    return b"PK\6\6" + long + b"PK\6\7" + struct.pack("<IQI", 0, at, 1) + b"PK\5\6" + short


def about(record: str, /, **changes: Any) -> Lie:
    """The lie that changes the entry of `record` alone."""
    return lambda entry: replace(entry, **changes) if entry.name.endswith(f"/{record}") else entry


def text(value: str) -> bytes:
    """The operation that pushes `value`."""
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value: int) -> bytes:
    """The operation that pushes `value`."""
    return b"J" + struct.pack("<i", value)


def numbers(*values: int) -> bytes:
    """The operations that push a tuple."""
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(
    *,
    key: str = "0",
    count: int = 6,
    kind: str = "torch\nFloatStorage",
    offset: bytes = number(0),
    shape: bytes = numbers(2, 3),
    strides: bytes = numbers(3, 1),
    rest: bytes = b"",
) -> bytes:
    """The operations that build one tensor, as torch.save writes them."""
    storage = b"(" + text("storage") + f"c{kind}\n".encode() + text(key) + text("cpu")
    storage += number(count) + b"tQ"
    hooks = b"ccollections\nOrderedDict\n)R"
    build = b"ctorch._utils\n_rebuild_tensor_v2\n("
    return build + storage + offset + shape + strides + b"\x89" + hooks + rest + b"tR"


def table(*entries: tuple[str, bytes]) -> bytes:
    """A whole pickle: a table of `entries`, name and the operations that build the value."""
    inside = b"".join(text(name) + value for name, value in entries)
    return b"\x80\x02}(" + inside + b"u."


def weights(program: bytes, data: bytes = bytes(24), **more: bytes) -> dict[str, bytes]:
    """The records of an archive with one storage."""
    return {"data.pkl": program, "data/0": data, **more}
