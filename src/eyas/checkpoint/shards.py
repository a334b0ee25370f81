"""Which weight files of a directory make up its model, and the headers in all of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from eyas.checkpoint.header import TensorHeader, read_headers
from eyas.checkpoint.hub import INDEX
from eyas.checkpoint.json_file import read_json_object
from eyas.checkpoint.repository import Repository
from eyas.errors import CheckpointError, reason_of

_INDEX_BYTES = 64 * 2**20  # that of Kimi-K2.5, with 208,550 tensors, has 23.6 MB
_REPAIR = "fetch or export the checkpoint again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Headers by tensor name, the model's files, and the safetensors files left aside.

    `remote` has the sizes of those files that are on the Hub and not at hand.
    """

    tensors: Mapping[str, TensorHeader]
    files: tuple[str, ...]
    other_files: tuple[str, ...]
    remote: Mapping[str, int]


def read_shards(directory: Path, only: str | None, repository: Repository | None = None) -> Shards:
    """The weight files in `directory`, or else in `repository`, and all their headers.

    `only` names a single file. Otherwise the index decides; without one it is model.safetensors;
    without that, all the safetensors files. Raises CheckpointError when files are missing, or a
    tensor is in two of them.
    """
    at_hand = _named(directory)
    afar = frozenset() if repository is None else repository.files.difference(at_hand)
    present = _weights([*at_hand, *afar])
    weight_map: dict[str, str] = {}
    if only is not None:
        files: tuple[str, ...] = (only,)
    elif os.path.lexists(directory / INDEX):
        weight_map = _read_index(directory, afar)
        files = tuple(sorted(set(weight_map.values())))
    elif "model.safetensors" in present:
        files = ("model.safetensors",)
    else:
        files = present
    if not files:
        raise _no_weights(directory, [*at_hand, *afar])

    remote: dict[str, int] = {}
    tensors: dict[str, TensorHeader] = {}
    for file in files:
        if repository is not None and file in afar:
            headers, remote[file] = repository.headers(file)
        else:
            headers = read_headers(directory, file)
        twice = next((name for name in headers if name in tensors), None)
        if twice is not None:
            raise CheckpointError(
                f"{directory} holds tensor {twice!r} twice, in {tensors[twice].file} and {file}",
                hint="remove the file that is not part of the model",
            )
        tensors |= headers
    _require_placed(weight_map, tensors, directory)
    return Shards(
        tensors=tensors,
        files=files,
        other_files=tuple(name for name in present if name not in files),
        remote=remote,
    )


def _require_placed(
    weight_map: Mapping[str, str], tensors: Mapping[str, TensorHeader], directory: Path
) -> None:
    for name, file in weight_map.items():
        if name not in tensors or tensors[name].file != file:
            raise CheckpointError(
                f"{directory / INDEX} places tensor {name!r:.80} in {file}, which does not hold it",
                hint=_REPAIR,
            )


def _named(directory: Path) -> frozenset[str]:
    try:
        return frozenset(path.name for path in directory.iterdir())
    except OSError as error:
        raise CheckpointError(
            f"{directory} cannot be listed: {reason_of(error)}", hint="check its permissions"
        ) from None


def _weights(names: Iterable[str]) -> tuple[str, ...]:
    # A repository's names are paths, and engines read only those at its top.
    return tuple(sorted(n for n in names if n.endswith(".safetensors") and _is_plain_name(n)))


def _read_index(directory: Path, afar: Collection[str]) -> dict[str, str]:
    path = directory / INDEX
    index = read_json_object(path, hint=_REPAIR, max_bytes=_INDEX_BYTES)
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{path} has no weight_map", hint=_REPAIR)
    for name, file in weight_map.items():
        if not isinstance(file, str) or not file.isprintable():
            raise _astray(path, name, file)
    for file in sorted(set(weight_map.values())):  # far fewer than tensors
        if not _is_plain_name(file):
            raise _astray(path, next(n for n, f in weight_map.items() if f == file), file)
        if file not in afar and not os.path.lexists(directory / file):
            raise CheckpointError(
                f"{directory} lacks {file:.80}, which {INDEX} names", hint="fetch the missing file"
            )
    return weight_map


def _astray(path: Path, name: str, file: object) -> CheckpointError:
    return CheckpointError(
        f"{path} places tensor {name!r:.80} in {file!r:.80}, which is no file name beside it",
        hint=_REPAIR,
    )


def _is_plain_name(file: str) -> bool:
    return file.isprintable() and not set(file) & set("/\\:") and file not in ("", ".", "..")


def _no_weights(directory: Path, names: Iterable[str]) -> CheckpointError:
    pickled = sorted(name for name in names if name.endswith((".bin", ".pt", ".pth")))
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
