"""A checkpoint's tensors as torch tensors, by name and by role."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from eyas import dialects
from eyas.checkpoint import Checkpoint
from eyas.checkpoint.rows import Rows, StoredRows, blocks
from eyas.dialects.contents import contents
from eyas.errors import UnsupportedError
from eyas.spec import Eagle3Spec

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "BOOL": torch.bool,
}

Shapes = Mapping[str, tuple[int, ...]]


def read_tensor(checkpoint: Checkpoint, name: str) -> Tensor:
    """Tensor `name` with the dtype and shape of its header.

    Raises CheckpointError when it cannot be read, UnsupportedError for a quantised dtype.
    """
    return tensor_of(StoredRows(checkpoint, name), checkpoint.place(name))


def tensor_of(rows: Rows, place: str) -> Tensor:
    """All of `rows` as a tensor; `place` says where they are in a message."""
    if rows.dtype not in _DTYPES:
        raise UnsupportedError(f"{place} holds {rows.dtype}, which cannot be run")
    # a bytearray, because torch warns about memory that it may not write to
    raw = bytearray(b"".join(blocks(rows)))
    if not raw:
        return torch.empty(rows.shape, dtype=_DTYPES[rows.dtype])
    return torch.frombuffer(raw, dtype=_DTYPES[rows.dtype]).reshape(rows.shape)


class RoleTensors:
    """A checkpoint's tensors by the role that its dialect gives them.

    A part of a tensor that holds several, such as a fused qkv_proj, is read alone. Raises
    NotADrafterError for a checkpoint of no dialect, UnsupportedError for one of another kind than
    EAGLE-3.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        dialect, spec = dialects.read(checkpoint)
        if not isinstance(spec, Eagle3Spec):
            raise UnsupportedError(
                f"`{checkpoint.location}` is no EAGLE-3 drafter: {spec.unjudged}"
            )
        self._checkpoint = checkpoint
        self._contents = contents(checkpoint, dialect.roles(checkpoint), spec.attention)

    @property
    def roles(self) -> tuple[str, ...]:
        """Every role that a tensor has, or is a part of."""
        return tuple(self._contents)

    def tensor(self, role: str) -> str | None:
        """The name of the tensor that `role` is in; None when there is none."""
        content = self._contents.get(role)
        return None if content is None else content.tensor

    def read(self, role: str) -> Tensor:
        """The values of `role`, which `tensor` finds, in the shape that the file has them in."""
        content = self._contents[role]
        return tensor_of(content.rows, self._checkpoint.place(content.tensor))
