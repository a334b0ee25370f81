"""A checkpoint whose numbers say where they come from, and parameters read by such numbers.

Run by an engine's own Python, beside the probe of that engine; needs torch and nothing of eyas.

A code is a float32 below 1.0 whose bits are tensor number and row: ``number << 20 | row``. Loaders
copy, cut, join and pad; none of it changes the bits. A tensor of another type carries one number
of 2.0 or more throughout, which its type holds exactly, and its rows cannot be told.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import torch

_ROW_BITS = 20
_FIRST, _LAST = 8, 1015  # tensor numbers: no code is denormal, and none reaches 1.0
_ONE = 0x3F800000  # the bits of 1.0
_FLOATS = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}
_INTEGERS = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
}
_EIGHT_BIT_FLOATS = {"F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2}
_TYPES = _FLOATS | _INTEGERS | _EIGHT_BIT_FLOATS
# What every eight-bit float holds exactly: two bits of mantissa.
_ROUND = tuple(m * 2**e for e in range(6) for m in (4, 5, 6, 7))
_CHUNK = 2**24  # elements that are looked at together
UNTOUCHED = -(2**30)  # what integer parameters hold before loading


class Uncodable(Exception):  # noqa: N818 - the probe's limit, told as one sentence
    """A checkpoint whose numbers cannot be made to say where they come from."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the checkpoint: `name` as the file has it, `file` the one that holds it."""

    name: str
    file: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """The number of its elements."""
        return prod(self.shape)

    @property
    def label(self) -> str:
        """Its name behind its file's."""
        return f"{self.file} :: {self.name}"


@dataclass(slots=True)
class Codes:
    """What each code stands for."""

    by_number: dict[int, Tensor] = field(default_factory=dict)
    by_constant: dict[float, Tensor] = field(default_factory=dict)
    integers: list[tuple[Tensor, torch.Tensor]] = field(default_factory=list)

    @property
    def tensors(self) -> list[Tensor]:
        """Every tensor of the checkpoint."""
        kept = [tensor for tensor, _ in self.integers]
        return [*self.by_number.values(), *self.by_constant.values(), *kept]


@dataclass(slots=True)
class Segment:
    """Rows `start` to `stop` of a parameter, alike throughout.

    `offset` is the tensor's row in row `start`, None where its numbers do not tell. `zeros` and
    `untouched` count elements; `also` names further tensors in the same rows.
    """

    start: int
    stop: int
    tensor: Tensor | None
    offset: int | None
    zeros: int
    untouched: int
    also: tuple[str, ...] = ()


def coded_copy(source: Path, copy: Path) -> Codes:
    """Writes the directory `source` as `copy`, with the tensors of its safetensors files coded.

    Of every file the name stays; what is no safetensors file is copied as it is. Integer tensors
    of one dimension, which are maps, keep their numbers. Raises Uncodable.
    """
    codes = Codes()
    copy.mkdir(parents=True)
    for path in sorted(p for p in source.iterdir() if p.is_file()):
        if path.suffix == ".safetensors":
            _write_coded(path, copy / path.name, codes)
        else:
            shutil.copyfile(path, copy / path.name)
    return codes


def _write_coded(source: Path, copy: Path, codes: Codes) -> None:
    with source.open("rb") as raw:
        (length,) = struct.unpack("<Q", raw.read(8))
        header: dict[str, Any] = json.loads(raw.read(length))
        metadata = header.pop("__metadata__", None)
        written: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
        contents: list[torch.Tensor] = []
        position = 0
        for name, entry in header.items():
            tensor = Tensor(name, source.name, entry["dtype"], tuple(entry["shape"]))
            start, stop = entry["data_offsets"]
            raw.seek(8 + length + start)
            content, dtype = _content(tensor, raw.read, stop - start, codes)
            size = content.numel() * content.element_size()
            offsets = [position, position + size]
            written[name] = {"dtype": dtype, "shape": entry["shape"], "data_offsets": offsets}
            position += size
            contents.append(content)
    text = json.dumps(written).encode()
    text += b" " * (-len(text) % 8)
    with copy.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for content in contents:
            for piece in _pieces(content):
                flat = piece.contiguous().reshape(-1)
                out.write(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")


def _pieces(content: torch.Tensor) -> Iterator[torch.Tensor]:
    """`content` in blocks of rows; an expanded tensor is never whole in memory."""
    if content.dim() < 2:
        yield content
        return
    rows = max(1, _CHUNK // max(1, prod(content.shape[1:])))
    yield from content.split(rows)


def _content(tensor: Tensor, read: Any, size: int, codes: Codes) -> tuple[torch.Tensor, str]:
    """What the copy holds for `tensor`, and its type there."""
    if tensor.dtype in _FLOATS:
        if "d2t" in tensor.name:  # a map's parameter takes whole numbers alone
            return _constant(tensor, codes), tensor.dtype
        return _coded(tensor, codes), "F32"
    if tensor.dtype in _INTEGERS and len(tensor.shape) == 1:
        kept = torch.frombuffer(bytearray(read(size)) or bytearray(8), dtype=torch.uint8)[:size]
        values = kept.view(_INTEGERS[tensor.dtype])
        named = "d2t" in tensor.name or "t2d" in tensor.name
        if named or tensor.dtype == "BOOL" or bool((values != 0).any()):
            if any(torch.equal(values, other) for _, other in codes.integers):
                values = values.flip(0)  # told apart from the same map in another file
            codes.integers.append((tensor, values))
            return values, tensor.dtype
    if tensor.dtype in _INTEGERS or tensor.dtype in _EIGHT_BIT_FLOATS:
        return _constant(tensor, codes), tensor.dtype
    raise Uncodable(f"tensor {tensor.name} is {tensor.dtype}, which cannot be traced")


def _coded(tensor: Tensor, codes: Codes) -> torch.Tensor:
    number = _FIRST + len(codes.by_number)
    rows = tensor.shape[0] if tensor.shape else 1
    if number > _LAST or rows > 2**_ROW_BITS:
        raise Uncodable(f"tensor {tensor.name} has more rows, or comes later, than can be traced")
    codes.by_number[number] = tensor
    bits = (number << _ROW_BITS) + torch.arange(rows, dtype=torch.int32)
    column = bits.view(torch.float32)
    if len(tensor.shape) < 2:
        return column.reshape(tensor.shape)
    return column.reshape(rows, *(1 for _ in tensor.shape[1:])).expand(tensor.shape)


def _constant(tensor: Tensor, codes: Codes) -> torch.Tensor:
    numbers = (1,) if tensor.dtype == "BOOL" else _ROUND  # a bool has no other that is not zero
    free = (float(n) for n in numbers if float(n) not in codes.by_constant)
    value = next(free, None)
    if value is None:
        raise Uncodable(f"tensor {tensor.name} is one of too many that are no floats")
    codes.by_constant[value] = tensor
    kind = _TYPES[tensor.dtype]
    # One number expanded; `_pieces` makes it whole block by block.
    return torch.tensor(value).to(kind).expand(tensor.shape)


def spoil(parameter: torch.Tensor) -> None:
    """Fills `parameter` with what no loader writes."""
    if parameter.is_floating_point():
        parameter.fill_(float("nan"))
    else:
        parameter.fill_(UNTOUCHED if parameter.dtype in (torch.int64, torch.int32) else 0)


def left_by_construction(parameter: torch.Tensor) -> str:
    """What construction left in `parameter`: memory (NaN, where it was asked for), ones, …"""
    if not parameter.numel():
        return "memory"
    if parameter.is_floating_point():
        if bool(parameter.isnan().any()):
            return "memory"
    elif bool((parameter == torch.iinfo(parameter.dtype).max).any()):
        return "memory"
    for word, value in (("ones", 1), ("zeros", 0)):
        if bool((parameter == value).all()):
            return word
    return "random"


def segments_of(parameter: torch.Tensor, codes: Codes) -> list[Segment]:
    """What `parameter` holds, row by row, alike rows together."""
    rows = parameter.shape[0] if parameter.dim() else 1
    if not parameter.numel():
        return []
    if not parameter.is_floating_point():
        return _integer_segments(parameter.reshape(-1), codes)
    table = parameter.detach().reshape(rows, -1)
    step = max(1, _CHUNK // table.shape[1])
    found: list[Segment] = []
    for begin in range(0, rows, step):
        block = table[begin : begin + step].to(torch.float32).contiguous()
        for index, row in enumerate(_rows(block, codes), begin):
            _append(found, index, row)
    return found


_Row = tuple["Tensor | None", "int | None", int, int, tuple[str, ...]]


def _rows(block: torch.Tensor, codes: Codes) -> Iterator[_Row]:
    """Tensor, its row, zeros, untouched elements and further tensors, for each row of `block`."""
    bits = block.view(torch.int32)
    untouched = block.isnan()
    zero = block == 0
    coded = ~untouched & ~zero
    low = bits.masked_fill(~coded, 2**31 - 1).amin(1).tolist()
    high = bits.masked_fill(~coded, -(2**31)).amax(1).tolist()
    zeros, left = zero.sum(1).tolist(), untouched.sum(1).tolist()
    width = block.shape[1]
    for i, (least, most) in enumerate(zip(low, high, strict=True)):
        if zeros[i] + left[i] == width:
            yield None, None, zeros[i], left[i], ()
            continue
        tensor, row = _source(least, codes)
        if least == most:
            yield tensor, row, zeros[i], left[i], ()
            continue
        names = {_source(b, codes)[0].label for b in set(bits[i][coded[i]].tolist())}
        yield tensor, row, zeros[i], left[i], tuple(sorted(names - {tensor.label})) or ("its own",)


def _source(bits: int, codes: Codes) -> tuple[Tensor, int | None]:
    if 0 < bits < _ONE:
        tensor = codes.by_number.get(bits >> _ROW_BITS)
        if tensor is not None:
            return tensor, bits & (2**_ROW_BITS - 1)
    value = struct.unpack("<f", struct.pack("<i", bits))[0]
    constant = codes.by_constant.get(value)
    if constant is not None:
        return constant, None
    for tensor, values in codes.integers:  # a map that was copied into floats
        if bool((values.to(torch.float32) == value).any()):
            return tensor, None
    return Tensor("a number that no tensor holds", "", "", ()), None


def _append(found: list[Segment], index: int, row: _Row) -> None:
    """Adds a row to the last of `found` where it goes on, else as a new one.

    Counts of an element are the same in every row of a segment.
    """
    tensor, at, zeros, left, also = row
    if found:
        last = found[-1]
        count = last.stop - last.start
        goes_on = last.tensor is tensor and last.also == also
        same = last.zeros == zeros * count and last.untouched == left * count
        expected = None if last.offset is None else last.offset + count
        if goes_on and same and expected == at:
            last.stop += 1
            last.zeros += zeros
            last.untouched += left
            return
    found.append(Segment(index, index + 1, tensor, at, zeros, left, also))


def _integer_segments(parameter: torch.Tensor, codes: Codes) -> list[Segment]:
    size = parameter.numel()
    if bool((parameter == UNTOUCHED).all()):
        return [Segment(0, size, None, None, 0, size)]
    for tensor, values in codes.integers:
        if values.numel() >= size and torch.equal(values[:size].to(parameter.dtype), parameter):
            return [Segment(0, size, tensor, 0, 0, 0)]
    for value, tensor in codes.by_constant.items():
        if bool((parameter == value).all()):
            return [Segment(0, size, tensor, None, 0, 0)]
    if bool((parameter == 0).all()):
        return [Segment(0, size, None, None, size, 0)]
    return [Segment(0, size, Tensor("numbers that no tensor holds", "", "", ()), None, 0, 0)]


def described(
    held: Mapping[str, tuple[tuple[int, ...], list[Segment], str]],
    consumed: Mapping[str, list[Segment]],
    codes: Codes,
) -> dict[str, Any]:
    """The parameters and tensors of a record.

    `held` has each parameter's shape, segments, and what construction had left there; `consumed`
    the segments of buffers, which are no parameters. A tensor is named behind its file
    (``model.safetensors :: fc.weight``), since two files may hold one name.
    """
    counts: dict[Tensor, int] = {}
    homes: dict[Tensor, list[str]] = {}
    for name, (shape, segments, _) in held.items():
        width = prod(shape[1:])
        for segment in segments:
            if segment.tensor is None:
                continue
            if name not in homes.setdefault(segment.tensor, []):
                homes[segment.tensor].append(name)
            here = (segment.stop - segment.start) * width - segment.zeros - segment.untouched
            counts[segment.tensor] = counts.get(segment.tensor, 0) + here
    used = {s.tensor for segments in consumed.values() for s in segments if s.tensor is not None}
    parameters = {
        name: {"shape": list(shape), "segments": [_plain(s, left) for s in segments]}
        for name, (shape, segments, left) in held.items()
    }
    tensors = {}
    for tensor in codes.tensors:
        label = tensor.label
        count = counts.get(tensor, 0)
        fate = "consumed" if tensor in used else "lost"
        if count:
            fate = "landed" if count >= tensor.elements else "short"
        tensors[label] = {
            "parameters": homes.get(tensor, []),
            "fate": fate,
            "cut": max(0, tensor.elements - count) if count else 0,
        }
    return {"parameters": parameters, "tensors": tensors}


def _plain(segment: Segment, left: str) -> dict[str, Any]:
    tensor = segment.tensor
    plain: dict[str, Any] = {
        "start": segment.start,
        "stop": segment.stop,
        "tensor": None if tensor is None else tensor.label,
        "offset": segment.offset,
        "zeros": segment.zeros,
        "left": left if tensor is None and segment.untouched else None,
    }
    if segment.untouched and (tensor is not None or segment.zeros):
        plain["untouched"] = segment.untouched
    if segment.also:
        plain["also"] = list(segment.also)
    return plain
