"""Which weight files of a directory make up its model, and the headers in all of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from eyas.checkpoint.header import TensorHeader, read_headers
from eyas.checkpoint.hub import INDEX, PICKLE, PICKLE_INDEX
from eyas.checkpoint.json_file import read_json_object
from eyas.checkpoint.pickled import read_pickled
from eyas.checkpoint.place import PICKLE_SUFFIX
from eyas.checkpoint.repository import Repository
from eyas.errors import CheckpointError, reason_of

_INDEX_BYTES = 64 * 2**20  # that of Kimi-K2.5, with 208,550 tensors, has 23.6 MB
_REPAIR = "fetch or export the checkpoint again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Headers by tensor name, the model's files, and the weight files left aside.

    `remote` has the sizes of those files that are on the Hub and not at hand.
    """

    tensors: Mapping[str, TensorHeader]
    files: tuple[str, ...]
    other_files: tuple[str, ...]
    remote: Mapping[str, int]


def read_shards(directory: Path, only: str | None, repository: Repository | None = None) -> Shards:
    """The weight files in `directory`, or else in `repository`, and all their headers.

    `only` names a single file. Otherwise the index decides; without one it is model.safetensors;
    without that, all the safetensors files. Where there are none of them, pickles count, of which
    an index or pytorch_model.bin says which. Raises CheckpointError when files are missing, or a
    tensor is in two of them.
    """
    at_hand = _named(directory)
    afar = frozenset() if repository is None else repository.files.difference(at_hand)
    present = _weights([*at_hand, *afar], ".safetensors")
    has_index = os.path.lexists(directory / INDEX)
    pickled = {PICKLE, PICKLE_INDEX} & {*at_hand, *afar} and not present and not has_index
    if (pickled and only is None) or (only is not None and only.endswith(PICKLE_SUFFIX)):
        return _read_pickles(directory, only, repository, at_hand)
    weight_map: dict[str, str] = {}
    if only is not None:
        files: tuple[str, ...] = (only,)
    elif has_index:
        weight_map = _read_index(directory, INDEX, afar)
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
        _require_once(headers, tensors, directory)
        tensors |= headers
    _require_placed(weight_map, tensors, directory / INDEX)
    return Shards(
        tensors=tensors,
        files=files,
        other_files=tuple(name for name in present if name not in files),
        remote=remote,
    )


def _read_pickles(
    directory: Path, only: str | None, repository: Repository | None, at_hand: Collection[str]
) -> Shards:
    """The same of weights that torch.save wrote; of those on the Hub no byte is fetched."""
    weight_map: dict[str, str] = {}
    if only is not None:
        files: tuple[str, ...] = (only,)
    elif PICKLE_INDEX in at_hand:
        afar = frozenset() if repository is None else repository.files.difference(at_hand)
        weight_map = _read_index(directory, PICKLE_INDEX, afar)
        files = tuple(sorted(set(weight_map.values())))
    else:
        files = (PICKLE,)
    away = next((file for file in files if file not in at_hand), None)
    if away is not None and repository is not None:
        raise CheckpointError(
            f"{repository.name} has its weights only as {away}, a pickle, which eyas reads from"
            " disk alone",
            hint=f"run: hf download {repository.name} --revision {repository.commit}",
        )
    tensors: dict[str, TensorHeader] = {}
    for file in files:
        headers = read_pickled(directory, file)
        _require_once(headers, tensors, directory)
        tensors |= headers
    _require_placed(weight_map, tensors, directory / PICKLE_INDEX)
    others = (*_weights(at_hand, ".safetensors"), *_weights(at_hand, PICKLE_SUFFIX))
    return Shards(
        tensors=tensors,
        files=files,
        other_files=tuple(name for name in others if name not in files),
        remote={},
    )


def _require_once(
    headers: Mapping[str, TensorHeader], tensors: Mapping[str, TensorHeader], directory: Path
) -> None:
    twice = next((name for name in headers if name in tensors), None)
    if twice is not None:
        one, other = tensors[twice].file, headers[twice].file
        raise CheckpointError(
            f"{directory} holds tensor {twice!r} twice, in {one} and {other}",
            hint="remove the file that is not part of the model",
        )


def _require_placed(
    weight_map: Mapping[str, str], tensors: Mapping[str, TensorHeader], index: Path
) -> None:
    for name, file in weight_map.items():
        if name not in tensors or tensors[name].file != file:
            raise CheckpointError(
                f"{index} places tensor {name!r:.80} in {file}, which does not hold it",
                hint=_REPAIR,
            )


def _named(directory: Path) -> frozenset[str]:
    try:
        return frozenset(path.name for path in directory.iterdir())
    except OSError as error:
        raise CheckpointError(
            f"{directory} cannot be listed: {reason_of(error)}", hint="check its permissions"
        ) from None


def _weights(names: Iterable[str], suffix: str) -> tuple[str, ...]:
    # A repository's names are paths, and engines read only those at its top.
    return tuple(sorted(n for n in names if n.endswith(suffix) and _is_plain_name(n)))


def _read_index(directory: Path, index_file: str, afar: Collection[str]) -> dict[str, str]:
    path = directory / index_file
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
                f"{directory} lacks {file:.80}, which {index_file} names",
                hint="fetch the missing file",
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
            f"{directory} has its weights only as {pickled[0]}, and of pickles eyas opens"
            f" {PICKLE} alone, or one that is named and ends in {PICKLE_SUFFIX}",
            hint="save them as model.safetensors",
        )
    return CheckpointError(
        f"{directory} has no model.safetensors",
        hint="give the directory that holds config.json and model.safetensors",
    )
