"""Tensor headers of a safetensors file, read and checked by the safetensors library."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path

from eyas.checkpoint.regular import regular_file
from eyas.errors import CheckpointError

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

    The library refuses a header that is too long, cut off, not JSON, or whose offsets overlap,
    leave gaps or disagree with the types and shapes; each becomes a CheckpointError.
    """
    from safetensors import SafetensorError, safe_open

    path = regular_file(directory, file)
    try:
        size = path.stat().st_size
        if size < 8:
            raise CheckpointError(
                f"{path} has {size} bytes, too few for a safetensors file", hint=_REPAIR
            )
        with path.open("rb") as raw:
            header_length = int.from_bytes(raw.read(8), "little")
        with safe_open(path, framework="np") as opened:
            names = opened.offset_keys()
            slices = [(name, opened.get_slice(name)) for name in names]
            shapes = [(name, s.get_dtype(), tuple(s.get_shape())) for name, s in slices]
    except SafetensorError as error:
        reason = " ".join(str(error).split())[:160]
        raise CheckpointError(
            f"{path} is not a sound safetensors file: {reason}", hint=_REPAIR
        ) from None
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:160]
        raise CheckpointError(f"{path} cannot be read: {reason}", hint=_REPAIR) from None

    headers = {}
    # The library accepts only tensors that follow each other without a gap.
    start = 8 + header_length
    for name, dtype, shape in shapes:
        if not name.isprintable():
            raise CheckpointError(
                f"{path} names a tensor with control characters: {name[:80]!r}", hint=_REPAIR
            )
        nbytes = tensor_nbytes(dtype, shape)
        headers[name] = TensorHeader(
            name=name, dtype=dtype, shape=shape, file=file, nbytes=nbytes, start=start
        )
        start += nbytes
    if start != size:
        raise CheckpointError(
            f"{path} has {size} bytes where its header accounts for {start}", hint=_REPAIR
        )
    return headers
