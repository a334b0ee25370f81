"""Writing a GGUF file: keys, tensors' headers, and tensors that need not be in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from eyas.checkpoint.gguf import GgufValue
from eyas.checkpoint.write import TensorBytes, write_tensor
from eyas.checkpoint.writeback import Writeback
from eyas.errors import CheckpointError, reason_of

ARCHITECTURE = "general.architecture"
_ALIGNMENT = 32  # bytes, where no key says otherwise
_DTYPES = ("F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64")
_LONGEST_NAME = 63  # bytes: ggml keeps 64 with the closing zero (ggml/include/ggml.h)
_MOST_DIMENSIONS = 4


def write_gguf(
    path: Path,
    keys: Mapping[str, Any],
    tensors: Mapping[str, TensorBytes],
    *,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Writes `keys` and `tensors` as the file `path`, and flushes it to disk.

    `keys` has ``general.architecture``. A value is a GgufValue, or plain: true and false become
    BOOL, whole numbers UINT32, others FLOAT32, texts STRING and lists of whole numbers ARRAY of
    INT32, the types that llama.cpp asks for. `progress` is told how many more bytes of tensors are
    written. Raises CheckpointError for data that does not fit its shape, for a type, a name or a
    number that the format has not, or when the disk refuses.
    """
    for name, tensor in tensors.items():
        _require_storable(name, tensor)
    try:
        _write_head(path, keys, tensors)
        with Writeback() as writeback, path.open("r+b", buffering=0) as file:

            def wrote(count: int) -> None:
                writeback.wrote(path, count)
                if progress is not None:
                    progress(count)

            at = file.seek(0, os.SEEK_END)
            for name, tensor in tensors.items():
                at = _aligned(at)
                write_tensor(file, at, name, tensor, wrote)
                at += tensor.nbytes
            file.truncate(_aligned(at))
            writeback.finish(path)
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be written: {reason_of(error)}", hint="check the disk and the path"
        ) from None


def _write_head(path: Path, keys: Mapping[str, Any], tensors: Mapping[str, TensorBytes]) -> None:
    import struct

    import numpy as np
    from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter

    writer = GGUFWriter(path, keys[ARCHITECTURE])
    for key, value in keys.items():
        typed = _typed(key, value)
        if (
            key == ARCHITECTURE or typed.value == []
        ):  # the writer has the one, and refuses the other
            continue
        of = None if typed.of is None else GGUFValueType(typed.of)
        writer.add_key_value(key, typed.value, GGUFValueType(typed.kind), sub_type=of)
    for name, tensor in tensors.items():
        # The type that is written is the last; the one of numpy has no name for bfloat16.
        plain, kind = np.dtype(np.float32), GGMLQuantizationType[tensor.dtype]
        writer.add_tensor_info(name, tensor.shape, plain, tensor.nbytes, raw_dtype=kind)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
    except (struct.error, OverflowError) as error:
        raise CheckpointError(f"{path} cannot hold a number of its keys: {error}") from None
    finally:
        writer.close()


def _typed(key: str, value: Any) -> GgufValue:
    """`value` with the type that llama.cpp asks for, by GGUF's numbers."""
    if isinstance(value, GgufValue):
        return value
    if isinstance(value, bool):
        return GgufValue(value=value, kind=7)
    if isinstance(value, int):
        return GgufValue(value=value, kind=4)
    if isinstance(value, float):
        return GgufValue(value=value, kind=6)
    if isinstance(value, str):
        return GgufValue(value=value, kind=8)
    if isinstance(value, list) and all(type(item) is int for item in value):
        return GgufValue(value=value, kind=9, of=5)
    raise CheckpointError(f"the key {key} has the value {value!r:.60}, which GGUF has no type for")


def _require_storable(name: str, tensor: TensorBytes) -> None:
    if tensor.dtype not in _DTYPES:
        raise CheckpointError(
            f"tensor {name} holds {tensor.dtype} numbers, which GGUF has no type for",
            hint="export the drafter in bfloat16",
        )
    if len(tensor.shape) > _MOST_DIMENSIONS or len(name.encode()) > _LONGEST_NAME:
        raise CheckpointError(
            f"tensor {name:.80} has {len(tensor.shape)} dimensions and a name of"
            f" {len(name.encode())} bytes, and ggml keeps 4 and 63"
        )


def _aligned(at: int) -> int:
    return -(-at // _ALIGNMENT) * _ALIGNMENT
