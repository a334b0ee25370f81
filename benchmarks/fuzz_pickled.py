"""A mutant as the pickle that torch.save writes, soundly or with lies.

A zip archive whose data.pkl is a program that builds a table of tensors, and whose other records
are their numbers. What lies is the program, or the archive around it.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
from dataclasses import replace
from random import Random

from benchmarks.fuzz_files import RawFile
from benchmarks.fuzz_mutations import Mutant
from benchmarks.fuzz_specimens import Specimen

from eyas.checkpoint.header import DTYPE_BITS

FILE = "pytorch_model.bin"
_LARGEST = 2**20  # bytes of a tensor: an archive has its directory at the end, and no holes
_STORAGES = {
    "F64": "Double",
    "F32": "Float",
    "F16": "Half",
    "BF16": "BFloat16",
    "I64": "Long",
    "I32": "Int",
    "I16": "Short",
    "I8": "Char",
    "U8": "Byte",
    "BOOL": "Bool",
    "C64": "ComplexFloat",
}
_TYPES = {
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F4": "float4_e2m1fn_x2",  # which eyas does not know
}
_HOOKS = b"ccollections\nOrderedDict\n)R"
# What a pickle of weights has no need of.
_CALLS = (
    b"cos\nsystem\nX\4\0\0\0true\x85R",
    b"X\2\0\0\0osX\6\0\0\0system\x93",
    b"(X\4\0\0\0trueios\nsystem\n",
    b"ctorch._utils\n_rebuild_tensor_v2\n)R",
    b"ctorch\nFloatStorage\n)\x81",
    b"]q\xffh\xffa",
    b"}}b",
    b"K\1Q",
)


def specimen(of: Specimen) -> Specimen:
    """The same drafter with its weights pickled."""
    return replace(of, name=f"pickled {of.name}", file=FILE)


def encode(mutant: Mutant, dice: Random, *, damaged: bool) -> RawFile:
    """The archive of `mutant`; a tensor too large or of a type that torch lacks is left out."""
    program = bytearray(b"\x80\x02}(")
    data: dict[str, bytes] = {}
    for name, (dtype, shape, raw) in mutant.tensors:
        size = math.prod(shape) * DTYPE_BITS[dtype] // 8
        if size > _LARGEST or dtype not in {**_STORAGES, **_TYPES}:
            continue
        key = str(len(data))
        data[key] = raw if raw is not None and len(raw) == size else bytes(size)
        program += _text(name) + _tensor(key, dtype, shape, size, dice, damaged=damaged)
        if damaged and dice.random() < 0.02:
            program += _text("extra") + dice.choice(_CALLS)
    program += b"u."
    if damaged:
        _damage(program, mutant, dice)
    return RawFile.of(_archive(bytes(program), data, dice, damaged=damaged))


def _tensor(
    key: str, dtype: str, shape: tuple[int, ...], size: int, dice: Random, *, damaged: bool
) -> bytes:
    """The operations that build one tensor; one number in a hundred is another where damaged."""

    def number(value: int) -> bytes:
        if damaged and dice.random() < 0.01:
            value = dice.choice((-1, 0, 1, value + 1, 2 * value, 2**31 - 1, 2**40))
        return b"\x8a\x08" + struct.pack("<q", value)

    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    typed = dtype in _TYPES
    kind = "torch.storage\nUntyped" if typed else f"torch\n{_STORAGES[dtype]}"
    count = size if typed else math.prod(shape)
    storage = b"(" + _text("storage") + f"c{kind}Storage\n".encode() + _text(key) + _text("cpu")
    sizes = b"".join(b"(" + b"".join(map(number, values)) + b"t" for values in (shape, strides))
    build = f"ctorch._utils\n_rebuild_tensor_v{3 if typed else 2}\n(".encode()
    last = f"ctorch\n{_TYPES[dtype]}\n".encode() if typed else b""
    storage += number(count) + b"tQ" + number(0)
    return build + storage + sizes + b"\x89" + _HOOKS + last + b"tR"


def _damage(program: bytearray, mutant: Mutant, dice: Random) -> None:
    roll = dice.random()
    if roll < 0.3:
        for _ in range(dice.choice((1, 1, 4))):
            program[dice.randrange(len(program))] = dice.randrange(256)
    elif roll < 0.4:
        del program[dice.randrange(len(program)) :]
    elif roll < 0.5:
        at = dice.randrange(len(program))
        program[at:at] = dice.choice(_CALLS)
    mutant.recipe.append("the program of the pickle")


def _archive(program: bytes, data: dict[str, bytes], dice: Random, *, damaged: bool) -> bytes:
    records = {"data.pkl": program, "byteorder": b"little", "version": b"3\n"}
    records |= {f"data/{key}": raw for key, raw in data.items()}
    if damaged and dice.random() < 0.1:
        gone = dice.choice(sorted(records))
        records[dice.choice((gone, "constants.pkl", "../data.pkl"))] = records.pop(gone)
    method = zipfile.ZIP_DEFLATED if damaged and dice.random() < 0.05 else zipfile.ZIP_STORED
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, raw in records.items():
            archive.writestr(zipfile.ZipInfo(f"archive/{name}"), raw, compress_type=method)
    raw = bytearray(buffer.getvalue())
    if damaged and dice.random() < 0.4:
        start = raw.rindex(b"PK\5\6")
        first = struct.unpack_from("<I", raw, start + 16)[0]
        for _ in range(dice.choice((1, 2, 8))):  # in the directory
            raw[dice.randrange(first, len(raw))] = dice.randrange(256)
    return bytes(raw)


def _text(value: str) -> bytes:
    raw = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(raw)) + raw
