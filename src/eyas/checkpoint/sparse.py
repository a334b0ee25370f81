"""A drafter of any size on a few kilobytes of disk: true headers, holes for large tensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eyas.checkpoint.write import TensorBytes, write_checkpoint
from eyas.errors import CheckpointError


def write_sparse(
    directory: str | Path,
    config: Mapping[str, Any],
    headers: Mapping[str, tuple[str, tuple[int, ...]]],
    contents: Mapping[str, bytes] | None = None,
    extra_files: Mapping[str, str | bytes] | None = None,
) -> Path:
    """Writes a checkpoint with the tensors `headers` (name → dtype, shape).

    `contents` holds the bytes of the small ones, such as d2t; all others are holes and read as
    zeros. Raises as `write_checkpoint` does.
    """
    contents = contents or {}
    unknown = sorted(set(contents) - set(headers))
    if unknown:
        raise CheckpointError(f"there are contents but no header for tensor {unknown[0]!r}")
    tensors = {
        name: TensorBytes(dtype=dtype, shape=shape, data=contents.get(name))
        for name, (dtype, shape) in headers.items()
    }
    return write_checkpoint(directory, config, tensors, extra_files)
