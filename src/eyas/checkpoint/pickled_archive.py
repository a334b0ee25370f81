"""The zip archive that torch.save writes: where each of its records lies, and nothing unpacked.

Python's zipfile is not used: it forgives what precedes the archive, reads a directory of any size,
and looks at a record's own header only when it unpacks it. The rules are those of torch's writer
(caffe2/serialize/inline_container.cc of torch 2.13, over miniz): every record stored as it is, one
disk, nothing before the first record or after the end, the zip64 form at any size.

    30 bytes + name + padding   a record's own header, then its bytes; once for each record
    46 bytes + name + …         the directory: one entry for each record
    56 + 20 bytes               zip64: the end of the directory, and where that is
    22 bytes                    the end of the directory
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eyas.errors import CheckpointError

REPAIR = "fetch or export the file again"
_MOST = 65536  # records: one for each tensor, and some ten more
_MAX_DIRECTORY = 32 * 2**20
_MAX_TEXT = 64  # bytes, of the records that hold a number or a word
_END, _END64, _LOCATOR = b"PK\5\6", b"PK\6\6", b"PK\6\7"
_ENTRY, _LOCAL = b"PK\1\2", b"PK\3\4"
_NO_LONGER = (0xFFFF, 0xFFFFFFFF)  # what stands where zip64 has the number
_ENCRYPTED, _FOLDER = 0x1, 0x10
_PLAIN = 0x808  # sizes behind the bytes, names in UTF-8: flags that leave the bytes as they are

Read = Callable[[int, int], bytes]  # of a position and a length; fewer bytes where the file ends


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """The bytes of one record in its file."""

    start: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """What the directory says of one record; `header` is where the record's own header starts."""

    name: str
    header: int
    nbytes: int


def is_archive(head: bytes) -> bool:
    """Whether a file that starts with `head` is meant to be a zip archive."""
    return head.startswith(_LOCAL)


def read_records(read: Read, size: int, where: str) -> Mapping[str, StoredRecord]:
    """The records of an archive of `size` bytes, by name without the folder that holds them all.

    Raises CheckpointError for a directory that is not sound: records out of range, over each
    other, twice, packed, encrypted, or with names that lead elsewhere.
    """
    begin, length, count = _directory(read, size, where)
    entries = _entries(read(begin, length), count, where)
    found: dict[str, StoredRecord] = {}
    position = 0
    for entry in sorted(entries, key=lambda entry: entry.header):
        if entry.header < position:
            raise _unsound(where, f"the record {entry.name!r:.80} lies over another")
        start = _start(read, entry, where)
        position = start + entry.nbytes
        if position > begin:
            raise _unsound(where, f"the record {entry.name!r:.80} does not end where the data does")
        found[entry.name] = StoredRecord(start=start, nbytes=entry.nbytes)
    return _without_root(found, where)


def read_text(read: Read, record: StoredRecord | None, where: str) -> str | None:
    """What a small record says; None where there is none."""
    if record is None:
        return None
    if record.nbytes > _MAX_TEXT:
        raise _unsound(where, f"a record of one word has {record.nbytes} bytes")
    return read(record.start, record.nbytes).decode("ascii", "replace")


def _directory(read: Read, size: int, where: str) -> tuple[int, int, int]:
    """Where the directory starts, how long it is, and how many records it lists."""
    at = size - 22
    end = read(at, 22) if at >= 0 else b""
    if len(end) < 22 or not end.startswith(_END):
        raise _unsound(where, "it does not end as an archive does, and may be cut off")
    disks, count, length, begin, comment = struct.unpack("<4xI2xHIIH", end)
    locator = read(at - 20, 20) if at >= 20 else b""
    if locator.startswith(_LOCATOR):
        disk, at, all_disks = struct.unpack("<4xIQI", locator)
        end64 = read(at, 56) if at <= size - 56 else b""
        if len(end64) < 56 or not end64.startswith(_END64) or at + 56 + 20 + 22 != size:
            raise _unsound(where, "the end of its directory is not where it says")
        own_length, disks, own, count, length, begin = struct.unpack("<4xQ4xQQQQQ", end64)
        if disk or all_disks != 1 or own != count or own_length != len(end64) - 12:
            raise _unsound(where, "the end of its directory does not add up")
    elif count in _NO_LONGER or length in _NO_LONGER or begin in _NO_LONGER:
        raise _unsound(where, "its directory lacks the numbers of its zip64 form")
    if disks or comment:
        raise _unsound(where, "it is no archive of one piece")
    if count > _MOST or length > _MAX_DIRECTORY:
        raise _unsound(where, f"its directory lists {count} records in {length} bytes")
    if begin + length != at:
        raise _unsound(where, "its directory is not where it says")
    return begin, length, count


def _entries(directory: bytes, count: int, where: str) -> list[_Entry]:
    entries: list[_Entry] = []
    at = 0
    for _ in range(count):
        fixed = directory[at : at + 46]
        if len(fixed) < 46 or not fixed.startswith(_ENTRY):
            raise _unsound(where, "its directory lists fewer records than it says")
        flags, method, packed, nbytes, name, extra, comment, disk, traits, header = struct.unpack(
            "<8xHH8xIIHHHH2xII", fixed
        )
        at += 46
        label = _name(directory[at : at + name], where)
        more = _extra64(directory[at + name : at + name + extra], where)
        at += name + extra + comment
        # The long forms stand in this order, and only of what does not fit.
        nbytes, packed, header = (
            more.pop(0) if short == _NO_LONGER[1] and more else short
            for short in (nbytes, packed, header)
        )
        if flags & _ENCRYPTED:
            raise _unsound(where, f"the record {label!r:.80} is encrypted")
        if method or packed != nbytes or flags & ~_PLAIN:
            raise _unsound(where, f"the record {label!r:.80} is compressed, as torch writes none")
        if traits & _FOLDER:  # torch reads nothing of it, and leaves the tensor's memory as it was
            raise _unsound(where, f"the record {label!r:.80} is marked as a folder")
        if disk:
            raise _unsound(where, f"the record {label!r:.80} is on another disk")
        entries.append(_Entry(name=label, header=header, nbytes=nbytes))
    if at != len(directory):
        raise _unsound(where, "its directory lists more records than it says")
    names = {entry.name for entry in entries}
    if len(names) != len(entries):
        raise _unsound(where, "its directory lists a record twice")
    return entries


def _name(raw: bytes, where: str) -> str:
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise _unsound(where, "a record's name is no UTF-8 text") from None
    parts = name.split("/")
    if not name.isprintable() or set(name) & set("\\:") or {"", ".", ".."} & set(parts):
        raise _unsound(where, f"a record has the name {name!r:.80}, which leads elsewhere")
    return name


def _extra64(extra: bytes, where: str) -> list[int]:
    """The long numbers of an entry whose own fields are too short for them."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        at += 4
        if at + length > len(extra):
            break
        if kind == 1:
            whole = length // 8
            return list(struct.unpack_from(f"<{whole}Q", extra, at))
        at += length
    if at != len(extra):
        raise _unsound(where, "a record's further fields are cut off")
    return []


def _start(read: Read, entry: _Entry, where: str) -> int:
    """Where the bytes of a record start, after a header of its own that agrees with `entry`."""
    fixed = read(entry.header, 30)
    if len(fixed) < 30 or not fixed.startswith(_LOCAL):
        raise _unsound(where, f"the record {entry.name!r:.80} is not where the directory says")
    flags, method, name, extra = map(int, struct.unpack("<6xHH16xHH", fixed))
    if flags & ~_PLAIN or method:
        raise _unsound(where, f"the record {entry.name!r:.80} is packed, by its own header")
    if read(entry.header + 30, name) != entry.name.encode():
        raise _unsound(where, f"the record {entry.name!r:.80} has another name in its own header")
    return entry.header + 30 + name + extra


def _without_root(found: Mapping[str, StoredRecord], where: str) -> dict[str, StoredRecord]:
    """The records by their names in the one folder that torch puts them all into."""
    roots = {name.partition("/")[0] for name in found}
    if len(roots) != 1 or not all("/" in name for name in found):
        raise _unsound(where, "its records do not lie in one folder")
    return {name.partition("/")[2]: record for name, record in found.items()}


def _unsound(where: str, reason: str) -> CheckpointError:
    return CheckpointError(f"{where} is not a sound torch archive: {reason}", hint=REPAIR)
