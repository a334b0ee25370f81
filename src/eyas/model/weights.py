"""A checkpoint's tensors as torch tensors, by name and by role."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from eyas import dialects
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
# A file may hold these parts as one tensor, in this order.
_FUSED = {
    "self_attn.qkv_proj": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "mlp.gate_up_proj": ("mlp.gate_proj", "mlp.up_proj"),
}

Shapes = Mapping[str, tuple[int, ...]]


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
    if not raw:
        return torch.empty(header.shape, dtype=_DTYPES[header.dtype])
    return torch.frombuffer(raw, dtype=_DTYPES[header.dtype]).reshape(header.shape)


class RoleTensors:
    """A checkpoint's tensors by the role that its dialect gives them.

    `shapes` are those of the drafter's own matrices; they tell where a role lies in a tensor that
    holds several, such as a fused qkv_proj. Raises NotADrafterError for a checkpoint of no
    dialect.
    """

    def __init__(self, checkpoint: Checkpoint, shapes: Shapes) -> None:
        self._checkpoint = checkpoint
        self._shapes = shapes
        roles = dialects.recognise(checkpoint).roles(checkpoint)
        self._tensors = {role: tensor for tensor, role in roles.items()}

    def tensor(self, role: str) -> str | None:
        """The name of the tensor that `role` is in; None when there is none."""
        place = self._place(role)
        return None if place is None else place[0]

    def read(self, role: str) -> Tensor:
        """The values of `role`, which `tensor` finds, in the shape that the file has them in."""
        place = self._place(role)
        if place is None:
            raise KeyError(role)
        name, start, rows = place
        held = read_tensor(self._checkpoint, name)
        return held if rows is None else held[start : start + rows]

    def _place(self, role: str) -> tuple[str, int, int | None] | None:
        """Tensor, first row and number of rows (None: all of it) of `role`."""
        if role in self._tensors:
            return self._tensors[role], 0, None
        for fused, parts in _FUSED.items():
            for index, part in enumerate(parts):
                whole = role.replace(part, fused)
                if part not in role or whole not in self._tensors:
                    continue
                siblings = [role.replace(part, before) for before in parts[:index]]
                start = sum(self._shapes[sibling][0] for sibling in siblings)
                return self._tensors[whole], start, self._shapes[role][0]
        return None
