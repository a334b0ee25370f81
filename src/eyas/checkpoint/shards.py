"""Which weight files of a directory make up its model, and the headers in all of them."""

from __future__ import annotations

import os
from pathlib import Path

from eyas.checkpoint.header import TensorHeader, read_headers
from eyas.checkpoint.json_file import read_json_object
from eyas.checkpoint.regular import regular_file
from eyas.errors import CheckpointError

INDEX = "model.safetensors.index.json"
_REPAIR = "fetch or export the checkpoint again"


def read_shards(
    directory: Path, only: str | None
) -> tuple[dict[str, TensorHeader], tuple[str, ...], tuple[str, ...]]:
    """Headers by tensor name, the model's files, and the safetensors files left aside.

    `only` names a single file. Otherwise the index decides; without one it is model.safetensors;
    without that, all the safetensors files. Raises CheckpointError when files are missing, or a
    tensor is in two of them.
    """
    present = _named(directory, ".safetensors")
    weight_map: dict[str, str] = {}
    if only is not None:
        files: tuple[str, ...] = (only,)
    elif os.path.lexists(directory / INDEX):
        weight_map = _read_index(directory)
        files = tuple(sorted(set(weight_map.values())))
    elif "model.safetensors" in present:
        files = ("model.safetensors",)
    else:
        files = present
    if not files:
        raise _no_weights(directory)

    tensors: dict[str, TensorHeader] = {}
    for file in files:
        for name, header in read_headers(directory, file).items():
            if name in tensors:
                raise CheckpointError(
                    f"{directory} holds tensor {name!r} twice, in {tensors[name].file} and {file}",
                    hint="remove the file that is not part of the model",
                )
            tensors[name] = header
    for name, file in weight_map.items():
        if name not in tensors or tensors[name].file != file:
            raise CheckpointError(
                f"{directory / INDEX} places tensor {name!r} in {file}, which does not hold it",
                hint=_REPAIR,
            )
    return tensors, files, tuple(name for name in present if name not in files)


def _named(directory: Path, *suffixes: str) -> tuple[str, ...]:
    try:
        return tuple(sorted(p.name for p in directory.iterdir() if p.suffix in suffixes))
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise CheckpointError(
            f"{directory} cannot be listed: {reason}", hint="check its permissions"
        ) from None


def _read_index(directory: Path) -> dict[str, str]:
    path = regular_file(directory, INDEX)
    weight_map = read_json_object(path, hint=_REPAIR).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{path} has no weight_map", hint=_REPAIR)
    for name, file in weight_map.items():
        if not isinstance(file, str) or not _is_plain_name(file):
            raise CheckpointError(
                f"{path} places tensor {name!r} in {file!r}, which is no file name beside it",
                hint=_REPAIR,
            )
        if not os.path.lexists(directory / file):
            raise CheckpointError(
                f"{directory} lacks {file}, which {INDEX} names", hint="fetch the missing file"
            )
    return weight_map


def _is_plain_name(file: str) -> bool:
    return file.isprintable() and not set(file) & set("/\\:") and file not in ("", ".", "..")


def _no_weights(directory: Path) -> CheckpointError:
    pickled = _named(directory, ".bin", ".pt", ".pth")
    if pickled:
        return CheckpointError(
            f"{directory} has its weights only as {pickled[0]}, a pickle that this version of eyas"
            " does not open",
            hint="save them as model.safetensors",
        )
    return CheckpointError(
        f"{directory} has no model.safetensors",
        hint="give the directory that holds config.json and model.safetensors",
    )
