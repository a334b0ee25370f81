"""Writing a drafter as a Hugging Face directory: all of it, or nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from eyas.checkpoint.header import read_headers, tensor_nbytes
from eyas.checkpoint.hub import INDEX
from eyas.checkpoint.layout import lay_out, split
from eyas.checkpoint.spans import Span, copy_span
from eyas.checkpoint.staging import staged
from eyas.checkpoint.writeback import Writeback
from eyas.errors import CheckpointError

_CONFIG = "config.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorBytes:
    """A tensor to be written: safetensors dtype name, shape, little-endian row-major bytes.

    `data` is the bytes, where they lie in a file, a function that yields them in pieces (so that a
    large tensor need not be in memory: ``lambda: checkpoint.chunks(name)``), or None for a hole,
    which reads as zeros and takes no room on disk.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes | Span | Callable[[], Iterable[bytes]] | None

    @property
    def nbytes(self) -> int:
        """How many bytes type and shape need; raises CheckpointError for an unknown type."""
        return tensor_nbytes(self.dtype, self.shape)


def write_checkpoint(
    directory: str | Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, TensorBytes],
    extra_files: Mapping[str, str | bytes] | None = None,
    *,
    shard_bytes: int | None = None,
    verify: Callable[[Path], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Writes config.json, model.safetensors and `extra_files` (by file name) as `directory`.

    With `shard_bytes`, tensors of more bytes than that go into several files with an index, as
    `layout.split` says. Everything is written into a hidden sibling, read back, flushed to disk and
    renamed, so that `directory` never exists half-written. `verify` is given the sibling before it
    is renamed; what it raises ends the writing. `progress` is told how many more bytes of tensors
    are written. Raises CheckpointError when `directory` exists already, when data does not fit its
    shape, or when the disk refuses.
    """
    final = Path(directory).expanduser().absolute()
    files = split({name: tensor.nbytes for name, tensor in tensors.items()}, shard_bytes)
    raw = {_CONFIG: _json(config)}
    if len(files) > 1:
        raw[INDEX] = _index(files, tensors)
    for name, content in (extra_files or {}).items():
        if name != Path(name).name or name in (*raw, *files, INDEX, ".", ".."):
            raise CheckpointError(f"{name!r} cannot be an extra file's name")
        raw[name] = content.encode() if isinstance(content, str) else content

    with staged(final) as draft, Writeback() as writeback:
        draft.mkdir()
        for name, content in raw.items():
            (draft / name).write_bytes(content)
            writeback.finish(draft / name)
        for file, names in files.items():
            _write_tensors(draft / file, {n: tensors[n] for n in names}, writeback, progress)
            read_headers(draft, file)
        if verify is not None:  # while the disk still writes
            verify(draft)
    return final


def _json(config: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False)
        return (text + "\n").encode()
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the config cannot be written as JSON: {error}") from None


def _index(files: Mapping[str, Iterable[str]], tensors: Mapping[str, TensorBytes]) -> bytes:
    """What says which tensor is in which of `files`."""
    weight_map = {name: file for file, names in files.items() for name in names}
    total = sum(tensor.nbytes for tensor in tensors.values())
    return _json({"metadata": {"total_size": total}, "weight_map": weight_map})


def _write_tensors(
    path: Path,
    tensors: Mapping[str, TensorBytes],
    writeback: Writeback,
    progress: Callable[[int], None] | None,
) -> None:
    def wrote(count: int) -> None:
        writeback.wrote(path, count)
        if progress is not None:
            progress(count)

    prefix, ranges = lay_out({name: (t.dtype, t.shape) for name, t in tensors.items()})
    with path.open("wb", buffering=0) as file:
        _write(file, prefix)
        # Its length first: what is not written then is a hole, and a disk may refuse it early.
        file.truncate(max([stop for _, stop in ranges.values()], default=len(prefix)))
        for name, (start, _) in ranges.items():
            _write_tensor(file, start, name, tensors[name], wrote)
    writeback.finish(path)


def _write_tensor(
    file: FileIO, start: int, name: str, tensor: TensorBytes, wrote: Callable[[int], None]
) -> None:
    data, needed = tensor.data, tensor.nbytes
    if data is None:
        wrote(needed)
        return
    if isinstance(data, Span):
        copy_span(data, needed, file, start, wrote)
        return
    if isinstance(data, bytes) and len(data) != needed:
        raise _unfit(name, tensor, len(data))
    file.seek(start)
    for chunk in (data,) if isinstance(data, bytes) else data():
        # More than is needed would run into the next tensor.
        if file.tell() + len(chunk) <= start + needed and not _is_zero(chunk):
            _write(file, chunk)
        else:
            file.seek(len(chunk), os.SEEK_CUR)
        wrote(len(chunk))
    if file.tell() != start + needed:
        raise _unfit(name, tensor, file.tell() - start)


def _write(file: FileIO, raw: bytes) -> None:
    view = memoryview(raw)
    while view:
        written = file.write(view)
        assert written is not None  # only of a descriptor that does not block
        view = view[written:]


def _is_zero(chunk: bytes) -> bool:
    """Whether `chunk` may stay a hole, so that sparse data stays sparse."""
    return not any(chunk[:64]) and chunk.count(0) == len(chunk)


def _unfit(name: str, tensor: TensorBytes, nbytes: int) -> CheckpointError:
    return CheckpointError(
        f"tensor {name} has {nbytes} bytes where {tensor.dtype} {list(tensor.shape)}"
        f" needs {tensor.nbytes}"
    )
