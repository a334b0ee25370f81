"""Tensors of a safetensors file as raw bytes, and as float32 where they are to be changed."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
_WIDTHS = {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "I64": 8, "I8": 1, "BOOL": 1}


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor as its file has it."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def floats(self) -> Floats:
        """The numbers as float32; KeyError for a type that holds none."""
        if self.dtype == "BF16":
            wide = np.frombuffer(self.data, np.uint16).astype(np.uint32) << 16
            return wide.view(np.float32).reshape(self.shape).copy()
        kind = {"F32": np.float32, "F16": np.float16}[self.dtype]
        return np.frombuffer(self.data, kind).astype(np.float32).reshape(self.shape)

    def whole(self) -> NDArray[np.int64]:
        """The numbers of an I64 tensor."""
        if self.dtype != "I64":
            raise KeyError(self.dtype)
        return np.frombuffer(self.data, np.int64).reshape(self.shape).copy()

    def like(self, numbers: NDArray[np.generic]) -> Held:
        """`numbers` in this tensor's own type."""
        return held(numbers, self.dtype)


def held(numbers: NDArray[np.generic], dtype: str) -> Held:
    """`numbers` as a tensor of `dtype`, rounded to the nearest."""
    if dtype == "BF16":
        bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32).astype(np.uint64)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        odd = np.isnan(np.asarray(numbers, np.float32))
        raw = np.where(odd, 0x7FC0, rounded).astype(np.uint16).tobytes()
    elif dtype == "F8_E4M3":
        raw = _e4m3(np.asarray(numbers, np.float32)).tobytes()
    else:
        kind = {
            "F32": np.float32, "F16": np.float16, "I64": np.int64, "I8": np.int8, "BOOL": np.bool_,
        }[dtype]  # fmt: skip
        raw = np.ascontiguousarray(numbers.astype(kind)).tobytes()
    return Held(dtype, tuple(numbers.shape), raw)


def _e4m3(numbers: Floats) -> NDArray[np.uint8]:
    """8-bit floats of 4 exponent and 3 mantissa bits, without infinities, up to 448."""
    codes = np.arange(127)  # 127 is not a number
    exponents, fractions = codes >> 3, codes & 7
    values = np.where(
        exponents == 0, fractions / 8 * 2.0**-6, (1 + fractions / 8) * 2.0 ** (exponents - 7.0)
    )
    middles = (values[1:] + values[:-1]) / 2
    nearest = np.searchsorted(middles, np.abs(numbers))
    return (nearest | (np.signbit(numbers) << 7)).astype(np.uint8)


def read_file(file: Path) -> dict[str, Held]:
    """Every tensor of a safetensors file, by name."""
    raw = file.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    body = raw[8 + length :]
    return {
        name: Held(said["dtype"], tuple(said["shape"]), body[slice(*said["data_offsets"])])
        for name, said in header.items()
        if name != "__metadata__"
    }


def write_file(file: Path, tensors: Mapping[str, Held]) -> None:
    """A safetensors file of `tensors`, in their order."""
    header, offset = {}, 0
    for name, tensor in tensors.items():
        assert len(tensor.data) == _WIDTHS[tensor.dtype] * math.prod(tensor.shape), name
        end = offset + len(tensor.data)
        header[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(tensor.data for tensor in tensors.values())
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)
