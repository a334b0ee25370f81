"""The head of a GGUF drafter, and the numbers of its map: the file without its weights."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eyas.checkpoint import Checkpoint

_MAP = "d2t"


def head_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """Everything before the first tensor and the map, packed, and the size of the file."""
    path = checkpoint.directory / checkpoint.config_file
    size = path.stat().st_size
    starts = [tensor.start for tensor in checkpoint.tensors.values() if tensor.start is not None]
    with path.open("rb") as file:
        head = file.read(min(starts, default=size))
    header = checkpoint.tensors.get(_MAP)
    return {
        "head": _packed(head),
        "size": size,
        "map": None if header is None else [header.start, _packed(checkpoint.read_bytes(_MAP))],
    }


def write_head(path: Path, stored: Mapping[str, Any]) -> None:
    """The file that `head_of` was given, as `path`, with holes for weights."""
    with path.open("wb") as file:
        file.write(_unpacked(stored["head"]))
        file.truncate(stored["size"])
        if stored["map"] is not None:
            start, content = stored["map"]
            file.seek(start)
            file.write(_unpacked(content))


def _packed(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw, 9)).decode()


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))
