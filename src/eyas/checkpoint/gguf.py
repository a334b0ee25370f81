"""The header of a GGUF file: its keys and its tensors' headers, read strictly and no byte beyond.

The gguf package is not used: it belongs to training, builds a Python list of every string of the
tokenizer, and believes the counts of the file. The rules are those of ggml's own loader
(ggml/src/gguf.cpp of llama.cpp at 067d44f): versions 2 and 3, little-endian, names and keys once,
tensors behind each other in the order of their headers, each padded to the alignment.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from eyas.checkpoint.float32 import shortest
from eyas.checkpoint.header import TensorHeader
from eyas.checkpoint.regular import regular_file
from eyas.errors import CheckpointError, reason_of

_REPAIR = "convert or fetch the file again"
_CHUNK = 4 * 2**20
_MAX_HEADER = 256 * 2**20
_MAX_KEY = 65535  # bytes
_MAX_NAME = 63  # bytes, of a tensor: ggml keeps 64 with the closing zero (ggml/include/ggml.h)
_LONGEST_REASON = 300
_MOST = 65536  # keys, or tensors: no file in use has a tenth of it
_KEPT = 256  # a longer list (of tokens, of scores) is kept by its length alone
_MAX_DIMENSIONS = 4
_FLOAT32, _STRING, _ARRAY = 6, 8, 9
# GGUF's types of values, by number: struct's letters.
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q"} | {
    12: "d"
}
# ggml's types of tensors, by number: name, elements in a block, bytes in a block
# (ggml-common.h; gguf 0.19's GGML_QUANT_SIZES).
_TYPES = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LongList:
    """A list of a GGUF file that is kept by its length alone."""

    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufValue:
    """A value with its type, and `of` the type of a list's elements, by GGUF's numbers."""

    value: Any
    kind: int
    of: int | None = None


KeyTypes = dict[str, tuple[int, int | None]]


def read_gguf(
    directory: Path, file: str
) -> tuple[dict[str, Any], dict[str, TensorHeader], KeyTypes]:
    """The keys of GGUF `file` in `directory`, its tensors' headers by name, and the keys' types.

    A type is GGUF's number, and for a list that of its elements too. Shapes are in PyTorch's order,
    rows first. A float32 is given as the shortest decimal that it holds. Raises CheckpointError for
    whatever is not sound.
    """
    return _read(directory, file, whole=None)


def read_typed(directory: Path, file: str, prefix: str) -> dict[str, GgufValue]:
    """The keys of GGUF `file` that begin with `prefix`, lists whole; CheckpointError as above."""
    config, _, types = _read(directory, file, whole=prefix)
    return {
        key: GgufValue(value=value, kind=types[key][0], of=types[key][1])
        for key, value in config.items()
        if key.startswith(prefix)
    }


def _read(
    directory: Path, file: str, *, whole: str | None
) -> tuple[dict[str, Any], dict[str, TensorHeader], KeyTypes]:
    path = regular_file(directory, file)
    try:
        with path.open("rb") as raw:
            header = _Header(path, raw, path.stat().st_size, whole)
            return *header.read(file), header.types
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {reason_of(error)}", hint=_REPAIR) from None


class _Header:
    """The bytes of the header so far, and the position up to which they are understood.

    Lists whose key begins with `whole` are kept whole, however long.
    """

    def __init__(self, path: Path, file: BinaryIO, size: int, whole: str | None) -> None:
        self.path, self.file, self.size, self.whole = path, file, size, whole
        self.data = bytearray()
        self.at = 0
        self.types: KeyTypes = {}

    def read(self, file: str) -> tuple[dict[str, Any], dict[str, TensorHeader]]:
        """Everything in it, in the order of the format."""
        if self._take(4, "the magic number") != b"GGUF":
            raise self._unsound("it does not begin with GGUF")
        version = self._number("I", "the version")
        if version not in (2, 3):
            raise self._unsound(f"its version is {version}, and eyas reads 2 and 3, little-endian")
        tensors = self._count("tensors", least=24)
        keys = self._count("keys", least=13)
        config = self._keys(keys)
        alignment = config.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise self._unsound(f"its alignment is {alignment!r}, which is no power of two")
        return config, self._tensors(tensors, file, alignment)

    def _keys(self, count: int) -> dict[str, Any]:
        config: dict[str, Any] = {}
        for _ in range(count):
            key = self._text("a key", _MAX_KEY)
            if key in config:
                raise self._unsound(f"it has the key {key!r} twice")
            kind = self._number("I", f"the type of {key!r}")
            self.types[key] = (kind, None)
            value = self._value(key, kind)
            config[key] = shortest(value) if kind == _FLOAT32 else value
        return config

    def _value(self, key: str, kind: int) -> Any:
        if kind == _STRING:
            return self._text(f"the value of {key!r}", self.size, printable=False)
        if kind == _ARRAY:
            return self._list(key)
        if kind not in _SCALARS:
            raise self._unsound(f"the value of {key!r} has the unknown type {kind}")
        value = self._number(_SCALARS[kind], f"the value of {key!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise self._unsound(f"the value of {key!r} is {value}")
        return value

    def _list(self, key: str) -> list[Any] | LongList:
        kind = self._number("I", f"the type in {key!r}")
        length = self._number("Q", f"the length of {key!r}")
        width = 8 if kind == _STRING else struct.calcsize("<" + _SCALARS.get(kind, "x"))
        if kind != _STRING and kind not in _SCALARS:
            raise self._unsound(f"the list {key!r} has elements of type {kind}")
        if length * width > self._left:
            raise self._unsound(f"the list {key!r} claims {length} elements, more than fit into it")
        self.types[key] = (_ARRAY, kind)
        if length <= _KEPT or (self.whole is not None and key.startswith(self.whole)):
            return [self._value(key, kind) for _ in range(length)]
        if kind == _STRING:
            self._skip_strings(key, length)
        else:
            self._take(length * width, f"the list {key!r}")
        return LongList(length=length)

    def _skip_strings(self, key: str, count: int) -> None:
        # A vocabulary has hundreds of thousands of them, so that this loop is written flat.
        unpack, at, data = struct.Struct("<Q").unpack_from, self.at, self.data
        for _ in range(count):
            if at + 8 > len(data):
                self.at = at
                self._ask(8, f"the list {key!r}")
            at += 8 + unpack(data, at)[0]
            if at > self.size:
                raise self._unsound(f"a text in {key!r} is longer than the file")
        self._ask(at - self.at, f"the list {key!r}")
        self.at = at

    def _tensors(self, count: int, file: str, alignment: int) -> dict[str, TensorHeader]:
        found: list[tuple[TensorHeader, int]] = []
        for _ in range(count):
            found.append(self._tensor(file))
        base = -(-self.at // alignment) * alignment
        headers: dict[str, TensorHeader] = {}
        expected = 0
        for header, offset in found:
            if header.name in headers:
                raise self._unsound(f"it names tensor {header.name!r} twice")
            if offset != expected:
                raise self._unsound(
                    f"tensor {header.name!r} begins at {offset}, where those before it end at"
                    f" {expected}"
                )
            if base + offset + header.nbytes > self.size:
                raise self._unsound(f"tensor {header.name!r} ends beyond the end of the file")
            headers[header.name] = TensorHeader(
                name=header.name,
                dtype=header.dtype,
                shape=header.shape,
                file=file,
                nbytes=header.nbytes,
                start=base + offset,
            )
            expected += -(-header.nbytes // alignment) * alignment
        return headers

    def _tensor(self, file: str) -> tuple[TensorHeader, int]:
        name = self._text("a tensor's name", _MAX_NAME)
        dimensions = self._number("I", f"the dimensions of {name!r}")
        if dimensions > _MAX_DIMENSIONS:
            raise self._unsound(f"tensor {name!r} has {dimensions} dimensions, and ggml has 4")
        sizes = [self._number("Q", f"the shape of {name!r}") for _ in range(dimensions)]
        number = self._number("I", f"the type of {name!r}")
        offset = self._number("Q", f"the offset of {name!r}")
        if number not in _TYPES:
            raise self._unsound(f"tensor {name!r} has the type {number}, which eyas does not know")
        dtype, block, width = _TYPES[number]
        elements = math.prod(sizes)
        if elements and (sizes[0] if sizes else 1) % block:
            raise self._unsound(f"a row of {name!r} is no whole number of {dtype}'s blocks")
        nbytes = elements // block * width
        if nbytes > self.size:
            raise self._unsound(f"tensor {name!r} claims {nbytes} bytes, more than the file has")
        shape = tuple(reversed(sizes))  # ggml names the size that varies fastest first
        header = TensorHeader(name=name, dtype=dtype, shape=shape, file=file, nbytes=nbytes)
        return header, offset

    @property
    def _left(self) -> int:
        return self.size - self.at

    def _count(self, what: str, *, least: int) -> int:
        count = self._number("Q", f"the number of {what}")
        if count * least > self.size:
            raise self._unsound(f"it claims {count} {what}, more than fit into it")
        if count > _MOST:
            raise self._unsound(f"it claims {count} {what}, and eyas reads {_MOST} at most")
        return int(count)

    def _number(self, letter: str, what: str) -> Any:
        raw = self._take(struct.calcsize("<" + letter), what)
        return struct.unpack("<" + letter, raw)[0]

    def _text(self, what: str, most: int, *, printable: bool = True) -> str:
        length = self._number("Q", f"the length of {what}")
        if length > most:
            raise self._unsound(f"{what} is {length} bytes long")
        try:
            text = self._take(length, what).decode()
        except UnicodeDecodeError:
            raise self._unsound(f"{what} is no UTF-8") from None
        if printable and (not text or not text.isprintable()):
            raise self._unsound(f"{what} is {text[:80]!r}")
        return text

    def _take(self, count: int, what: str) -> bytes:
        self._ask(count, what)
        self.at += count
        return bytes(self.data[self.at - count : self.at])

    def _ask(self, count: int, what: str) -> None:
        """Reads on until `count` more bytes are there, or raises."""
        end = self.at + count
        if end > self.size:
            raise self._unsound(f"it ends within {what}")
        if end > _MAX_HEADER:
            raise self._unsound(f"its header is longer than {_MAX_HEADER} bytes")
        while len(self.data) < end:
            chunk = self.file.read(max(_CHUNK, end - len(self.data)))
            if not chunk:
                raise self._unsound(f"it ends within {what}")
            self.data += chunk

    def _unsound(self, reason: str) -> CheckpointError:
        if len(reason) > _LONGEST_REASON:  # it names a key, and a key may be a page long
            reason = reason[:_LONGEST_REASON] + "…"
        return CheckpointError(f"{self.path} is no sound GGUF file: {reason}", hint=_REPAIR)
