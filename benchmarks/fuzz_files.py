"""A mutant as files: encoded soundly, or with a header, an index or bytes that lie."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.fuzz_mutations import Mutant, value

from eyas.checkpoint.header import DTYPE_BITS

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
Header = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class RawFile:
    """The first bytes of a file, and its size: what follows the bytes is a hole."""

    head: bytes
    size: int

    @classmethod
    def of(cls, raw: bytes) -> RawFile:
        """A file of exactly `raw`."""
        return cls(head=raw, size=len(raw))


def files_of(mutant: Mutant, dice: Random, *, damaged: bool) -> dict[str, RawFile]:
    """The files of `mutant` by name; `damaged` ones break a rule of their format."""
    files = _weights(mutant, dice, damaged=damaged and dice.random() < 0.6)
    files[CONFIG] = RawFile.of(json.dumps(mutant.config).encode())
    if damaged:
        what = dice.choice((_damage_config, damage_bytes, damage_bytes, _damage_index))
        mutant.recipe.append(what.__name__.strip("_"))
        what(files, dice)
    return files


def _weights(mutant: Mutant, dice: Random, *, damaged: bool) -> dict[str, RawFile]:
    """One weight file, or two with an index."""
    tensors, roll = mutant.tensors, dice.random()
    if roll > 0.15 or len(tensors) < 2:
        return {WEIGHTS: _encode(mutant, tensors, dice, damaged=damaged)}
    cut = dice.randrange(1, len(tensors))
    names = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    parts = (tensors[:cut], tensors[cut:])
    files = {
        name: _encode(mutant, part, dice, damaged=damaged)
        for name, part in zip(names, parts, strict=True)
    }
    weight_map = {
        tensor: name for name, part in zip(names, parts, strict=True) for tensor, _ in part
    }
    if roll < 0.12:
        index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
        files[INDEX] = RawFile.of(json.dumps(index).encode())
    return files


HELD_BYTES = 2**24


def _encode(
    mutant: Mutant, tensors: list[tuple[str, Any]], dice: Random, *, damaged: bool
) -> RawFile:
    """A safetensors file of `tensors`, in their order; repeated names stay repeated."""
    entries: list[tuple[str, Any]] = [("__metadata__", {"format": "pt"})]
    data = bytearray()
    at = 0
    for name, (dtype, shape, raw) in tensors:
        size = (prod(shape) * DTYPE_BITS[dtype] + 7) // 8
        entry = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        entries.append((name, entry))
        # behind gigabytes of a resized tensor the bytes stay a hole of the sparse file
        if raw is not None and len(raw) == size and at < HELD_BYTES:
            data.extend(bytes(at - len(data)))
            data.extend(raw)
        at += size
    if damaged:
        what = dice.choice(_LIES)
        mutant.recipe.append(f"header: {what.__name__[1:]}")
        what(entries, dice)
    header = _json(entries).encode()
    header += b" " * (-len(header) % 8)
    length = len(header)
    if damaged and dice.random() < 0.1:
        length = dice.choice((0, 1, length - 1, length + 1, length + 8, 10**8, 2**40, 2**64 - 1))
    head = length.to_bytes(8, "little") + header + bytes(data)
    return RawFile(head=head, size=8 + len(header) + at)


def _json(entries: list[tuple[str, Any]]) -> str:
    """An object of `entries`, which may repeat a key."""
    once = dict(entries)
    if len(once) == len(entries):
        return json.dumps(once)
    return "{" + ",".join(f"{json.dumps(k)}:{json.dumps(v)}" for k, v in entries) + "}"


def _entry(entries: list[tuple[str, Any]], dice: Random) -> dict[str, Any]:
    """One tensor's entry, or one that belongs to none."""
    found = [entry for name, entry in entries if name != "__metadata__"]
    return dice.choice(found) if found else {}


def _lie_of_offsets(entries: list[tuple[str, Any]], dice: Random) -> None:
    entry = _entry(entries, dice)
    start, stop = entry.get("data_offsets", (0, 0))
    entry["data_offsets"] = dice.choice(
        (
            [start + 1, stop + 1],
            [start, stop + 8],
            [stop, start],
            [0, stop - start],
            [2**63, 2**63 + stop - start],
            [start - 1, stop - 1],
            [start],
            [start, stop, stop],
            [str(start), stop],
            [float(start), stop],
            [start, None],
            {},
        )
    )


def _lie_of_shape(entries: list[tuple[str, Any]], dice: Random) -> None:
    entry = _entry(entries, dice)
    entry["shape"] = dice.choice(
        ([-1], [2**32, 2**32], [2**63, 4], [2**64 - 1], [1.5], "8", [True], [[8]], None, [0, 2**62])
    )


def _lie_of_type(entries: list[tuple[str, Any]], dice: Random) -> None:
    _entry(entries, dice)["dtype"] = dice.choice(
        ("F99", "bf16", "", None, 16, "F4", "C64", ["BF16"])
    )


def _lie_of_order(entries: list[tuple[str, Any]], dice: Random) -> None:
    """Sound: a header may name its tensors in any order."""
    dice.shuffle(entries)


def _lie_of_keys(entries: list[tuple[str, Any]], dice: Random) -> None:
    entry = _entry(entries, dice)
    if entry and dice.random() < 0.5:
        entry.pop(dice.choice(list(entry)))
    else:
        entry[dice.choice(("extra", "dtype ", "Shape"))] = value(dice)


def _lie_of_metadata(entries: list[tuple[str, Any]], dice: Random) -> None:
    entries[0] = ("__metadata__", dice.choice(({"a": 1}, [], None, {"a": "b" * 5000}, {}, "x")))


def _lie_of_name(entries: list[tuple[str, Any]], dice: Random) -> None:
    place = dice.randrange(len(entries))
    name = dice.choice(("__metadata__", "\x00", "a\nb", "\x1b[2J", "\ud800", "d2t", "fc.weight"))
    entries[place] = (name, entries[place][1])


def _lie_of_entry(entries: list[tuple[str, Any]], dice: Random) -> None:
    place = dice.randrange(len(entries))
    entries[place] = (entries[place][0], value(dice))


_LIES = (
    _lie_of_offsets,
    _lie_of_shape,
    _lie_of_type,
    _lie_of_order,
    _lie_of_order,
    _lie_of_keys,
    _lie_of_metadata,
    _lie_of_name,
    _lie_of_entry,
)
_JSON_TEXTS = (
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-1e400",
    b"9" * 5000,
    b"[" * 3000 + b"]" * 3000,
    b'{"a":' * 1500 + b"1" + b"}" * 1500,
    b'"\xff"',
    b'"\\ud800"',
    b'{"a": 1, "a": 2}',
    b"True",
    b"",
    b"1,",
    b"0x10",
)


def _damage_config(files: dict[str, RawFile], dice: Random) -> None:
    """Puts text where a value of the config is, or cuts the config off."""
    raw = files[CONFIG].head
    colons = [i for i, byte in enumerate(raw) if byte == 0x3A]
    if not colons or dice.random() < 0.15:
        raw = dice.choice(
            (raw[: dice.randrange(len(raw) + 1)], b"[]", b"null", b"\xef\xbb\xbf" + raw)
        )
    else:
        at = dice.choice(colons) + 1
        stop = min((i for i in (raw.find(b",", at), raw.find(b"}", at)) if i > 0), default=len(raw))
        raw = raw[:at] + dice.choice(_JSON_TEXTS) + raw[stop:]
    files[CONFIG] = RawFile.of(raw)


def damage_bytes(files: dict[str, RawFile], dice: Random) -> None:
    """Flips bytes of a file, or changes its size."""
    name = dice.choice(sorted(files))
    file = files[name]
    head, size = bytearray(file.head), file.size
    roll = dice.random()
    if roll < 0.25:
        size = max(0, dice.choice((0, 7, 8, size - 1, size + 1, size // 2, size + 4096)))
    elif head:
        for _ in range(dice.choice((1, 1, 2, 8))):
            head[dice.randrange(len(head))] = dice.randrange(256)
    files[name] = RawFile(head=bytes(head[:size]), size=size)


def _damage_index(files: dict[str, RawFile], dice: Random) -> None:
    """Writes an index that names what is not there, or a second weight file without one."""
    weights = sorted(name for name in files if name.endswith(".safetensors"))
    if dice.random() < 0.2:
        files[dice.choice(("z.safetensors", "consolidated.safetensors"))] = files[weights[0]]
        return
    places: tuple[Any, ...] = (
        weights[0],
        weights[-1],
        "../" + WEIGHTS,
        "/etc/passwd",
        CONFIG,
        INDEX,
        "gone.safetensors",
        "",
        "..",
        "a\x00b",
        "\ud800",
        "x" * 3000,
        7,
        None,
        [],
        {"a": 1},
    )
    names = ("fc.weight", "norm.weight", "d2t", "x", "", "\x1b[2J", "x" * 3000)
    weight_map: Any = {dice.choice(names): dice.choice(places) for _ in range(dice.randint(0, 3))}
    if dice.random() < 0.2:
        weight_map = value(dice)
    index = {"weight_map": weight_map} if dice.random() < 0.9 else value(dice)
    files[INDEX] = RawFile.of(json.dumps(index).encode())


class Folder:
    """A directory that is filled again and again; files of before are removed."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._base = str(path)
        self._names: set[str] = set()

    def fill(self, files: Mapping[str, RawFile]) -> None:
        """Makes `files` what the directory holds."""
        for name in self._names - files.keys():
            (self.path / name).unlink()
        for name, file in files.items():
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            descriptor = os.open(f"{self._base}/{name}", flags, 0o600)
            try:
                os.write(descriptor, file.head)
                if file.size != len(file.head):
                    os.ftruncate(descriptor, file.size)
            finally:
                os.close(descriptor)
        self._names = set(files)
