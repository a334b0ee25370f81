"""A checkpoint's tensors as torch tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from eyas.checkpoint import Checkpoint
from eyas.errors import UnsupportedError

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "BOOL": torch.bool,
}


def read_tensor(checkpoint: Checkpoint, name: str) -> Tensor:
    """Tensor `name` with the dtype and shape of its header.

    Raises CheckpointError when it cannot be read, UnsupportedError for a quantised dtype.
    """
    header = checkpoint.tensors[name]
    if header.dtype not in _DTYPES:
        raise UnsupportedError(
            f"{checkpoint.place(name)} holds {header.dtype}, which cannot be run"
        )
    # a bytearray, because torch warns about memory that it may not write to
    raw = bytearray(checkpoint.read_bytes(name))
    return torch.frombuffer(raw, dtype=_DTYPES[header.dtype]).reshape(header.shape)
