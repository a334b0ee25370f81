"""Writing a drafter as a Hugging Face directory: all of it, or nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyas.checkpoint.header import read_headers, tensor_nbytes
from eyas.checkpoint.layout import lay_out
from eyas.checkpoint.whole_file import remove_leftovers
from eyas.errors import CheckpointError, reason_of

_CHUNK = 16 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorBytes:
    """A tensor to be written: safetensors dtype name, shape, little-endian row-major bytes.

    `data` is the bytes, a function that yields them in pieces (so that a large tensor need not be
    in memory: ``lambda: checkpoint.chunks(name)``), or None for a hole, which reads as zeros and
    takes no room on disk.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes | Callable[[], Iterable[bytes]] | None


def write_checkpoint(
    directory: str | Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, TensorBytes],
    extra_files: Mapping[str, str | bytes] | None = None,
    *,
    verify: Callable[[Path], None] | None = None,
) -> Path:
    """Writes config.json, model.safetensors and `extra_files` (by file name) as `directory`.

    Everything is written into a hidden sibling, read back, flushed to disk and renamed, so that
    `directory` never exists half-written. `verify` is given the sibling before it is renamed; what
    it raises ends the writing. Raises CheckpointError when `directory` exists already, when data
    does not fit its shape, or when the disk refuses.
    """
    final = Path(directory).expanduser().absolute()
    require_new(final)
    for name in extra_files or {}:
        if name != Path(name).name or name in ("config.json", "model.safetensors", ".", ".."):
            raise CheckpointError(f"{name!r} cannot be an extra file's name")
    draft = _stage(final)
    done = False
    try:
        draft.parent.mkdir(parents=True, exist_ok=True)
        _clear_leftovers(final)
        draft.mkdir()
        _write_file(draft / "config.json", _config_text(config))
        _write_tensors(draft / "model.safetensors", tensors)
        for name, content in (extra_files or {}).items():
            raw = content.encode() if isinstance(content, str) else content
            _write_file(draft / name, raw)
        read_headers(draft, "model.safetensors")
        _sync_directory(draft)
        if verify is not None:
            verify(draft)
        require_new(final)  # a rename would replace an empty directory
        draft.rename(final)
        _sync_directory(final.parent)
        done = True
    except OSError as error:
        raise CheckpointError(
            f"{final} cannot be written: {reason_of(error)}", hint="check the disk and the path"
        ) from None
    finally:
        if not done:
            shutil.rmtree(draft, ignore_errors=True)
    return final


def require_new(directory: Path) -> None:
    """Raises CheckpointError when there is something at `directory`, be it a dangling link."""
    if os.path.lexists(directory):
        raise CheckpointError(
            f"{directory} exists already, and nothing is overwritten",
            hint="name a new directory, or remove it first",
        )


def _stage(final: Path, process: int | str | None = None) -> Path:
    """The hidden sibling of `final` that a process writes, this one unless another is named."""
    return final.with_name(f".eyas-{final.name}.{process or os.getpid()}.partial")


def _clear_leftovers(final: Path) -> None:
    """Removes what a process that was killed had begun to write as `final`."""
    before, _, after = _stage(final, "#").name.rpartition("#")
    remove_leftovers(final.parent, before, after)


def _config_text(config: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False)
        return (text + "\n").encode()
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the config cannot be written as JSON: {error}") from None


def _write_file(path: Path, raw: bytes) -> None:
    with path.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())


def _write_tensors(path: Path, tensors: Mapping[str, TensorBytes]) -> None:
    prefix, ranges = lay_out({name: (t.dtype, t.shape) for name, t in tensors.items()})
    with path.open("wb") as file:
        file.write(prefix)
        for name, (start, stop) in ranges.items():
            file.seek(start)
            for chunk in _chunks(name, tensors[name]):
                # A run of zeros is left as a hole, so that a sparse checkpoint stays sparse.
                if chunk.count(0) == len(chunk):
                    file.seek(len(chunk), os.SEEK_CUR)
                else:
                    file.write(chunk)
            if tensors[name].data is not None and file.tell() != stop:
                written, expected = file.tell() - start, stop - start
                raise CheckpointError(
                    f"tensor {name} has {written} bytes where {tensors[name].dtype}"
                    f" {list(tensors[name].shape)} needs {expected}"
                )
        file.truncate(max([stop for _, stop in ranges.values()], default=len(prefix)))
        file.flush()
        os.fsync(file.fileno())


def _chunks(name: str, tensor: TensorBytes) -> Iterable[bytes]:
    data = tensor.data
    if data is None:
        return
    if isinstance(data, bytes):
        if len(data) != tensor_nbytes(tensor.dtype, tensor.shape):
            raise CheckpointError(
                f"tensor {name} has {len(data)} bytes where {tensor.dtype} {list(tensor.shape)}"
                f" needs {tensor_nbytes(tensor.dtype, tensor.shape)}"
            )
        for start in range(0, len(data), _CHUNK):
            yield data[start : start + _CHUNK]
    else:
        yield from data()


def _sync_directory(directory: Path) -> None:
    # Windows cannot open a directory; there the rename alone has to do.
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
