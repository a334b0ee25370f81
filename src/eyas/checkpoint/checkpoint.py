"""Checkpoint: a config and the tensors' headers, from a directory, a file or the Hub."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

from eyas.checkpoint.bounds import require_bounded
from eyas.checkpoint.gguf import read_gguf
from eyas.checkpoint.header import TensorHeader
from eyas.checkpoint.hub import INDEX, PICKLE_INDEX, Part
from eyas.checkpoint.json_file import read_json_object
from eyas.checkpoint.place import GGUF_SUFFIX, PICKLE_SUFFIX, Place, locate
from eyas.checkpoint.regular import regular_file
from eyas.checkpoint.repository import Repository
from eyas.checkpoint.shards import read_shards
from eyas.checkpoint.spans import Span
from eyas.errors import CheckpointError, reason_of

_CHUNK = 16 * 2**20
_MAX_INTEGERS = 2**24  # the largest vocabulary in use has some 2**18 ids
_INTEGER_CODES = {
    "BOOL": "B",
    "U8": "B",
    "I8": "b",
    "I16": "h",
    "U16": "H",
    "I32": "i",
    "U32": "I",
    "I64": "q",
    "U64": "Q",
}
_OF_TRAINING = ("training_args.bin", "optimizer.bin")
_CONFIG_HINT = "a drafter is a directory with config.json and model.safetensors"


class Format(StrEnum):
    """How the weights are stored."""

    SAFETENSORS = "safetensors"
    GGUF = "GGUF"
    PICKLE = "pickle"  # read as weights only: nothing of it is run


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A drafter's files.

    `location` is what the user typed, `config` the raw config.json or the keys of a GGUF file,
    `files` the weight files that belong to it, `other_files` the weight files beside them that do
    not, and `revision` the Hub commit. `remote` has the sizes of the files that are in `repository`
    and not in `directory`: they are read in ranges. `key_types` has the types of a GGUF file's
    keys by the format's numbers, of a list those of its elements too.
    """

    location: str
    directory: Path
    config: Mapping[str, Any]
    config_file: str
    tensors: Mapping[str, TensorHeader]
    files: tuple[str, ...]
    revision: str | None
    other_files: tuple[str, ...] = ()
    repository: Repository | None = None
    remote: Mapping[str, int] = field(default_factory=dict)
    key_types: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    # Several rules look at the same map, and each look at a remote one is a request.
    _maps: dict[str, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def format(self) -> Format:
        """How the weights are stored: a GGUF file holds its config too."""
        if self.config_file.endswith(GGUF_SUFFIX):
            return Format.GGUF
        is_pickle = self.files[0].endswith(PICKLE_SUFFIX) if self.files else False
        return Format.PICKLE if is_pickle else Format.SAFETENSORS

    @property
    def index(self) -> str:
        """The name that an index of its weight files has, whether there is one or not."""
        return PICKLE_INDEX if self.format is Format.PICKLE else INDEX

    @property
    def rival(self) -> str | None:
        """A weight file beside the drafter's own that engines would load over it; None if none.

        Both engines read every .safetensors of a directory that has no index, the alphabetically
        last one winning. A consolidated file is the same weights once more, and left alone. Where
        there are none they read every .bin, for which no index counts, but for what a trainer
        keeps of itself (vLLM, model_loader/default_loader.py, _prepare_weights).
        """
        if self.format is Format.PICKLE:
            others = (name for name in self.other_files if not name.endswith(_OF_TRAINING))
            return next(others, None)
        if (self.directory / INDEX).is_file():
            return None
        strays = [name for name in self.other_files if not name.startswith("consolidated")]
        return strays[0] if strays else None

    def place(self, name: str) -> str:
        """Where tensor `name` is, or would be: ``model.safetensors :: fc.weight``."""
        header = self.tensors.get(name)
        file = header.file if header else (self.files[0] if self.files else "model.safetensors")
        return f"{file} :: {name}"

    def chunks(self, name: str) -> Iterator[bytes]:
        """The bytes of tensor `name` in pieces of at most 16 MiB; raises CheckpointError."""
        header = self.tensors.get(name)
        yield from self.spans(name, [(0, header.nbytes if header else 0)])

    def spans(self, name: str, spans: Iterable[tuple[int, int]]) -> Iterator[bytes]:
        """Parts of tensor `name`, each given by its first byte and its length, in small pieces.

        Raises CheckpointError where the tensor is not there or cannot be read.
        """
        if name in self._maps:
            yield from (self._maps[name][first : first + length] for first, length in spans)
            return
        header, begin = self._stored(name)
        if self.repository is not None and header.file in self.remote:
            for first, length in spans:
                yield from self.repository.chunks(header.file, begin + first, length)
            return
        path = regular_file(self.directory, header.file)
        try:
            with path.open("rb") as file:
                for first, length in spans:
                    file.seek(begin + first)
                    yield from _pieces(file, length, path, name)
        except OSError as error:
            raise CheckpointError(
                f"{path} cannot be read: {reason_of(error)}", hint="check its permissions"
            ) from None

    def span(self, name: str) -> Span | None:
        """Where the bytes of tensor `name` lie; None on the Hub. Raises CheckpointError."""
        header, start = self._stored(name)
        if self.repository is not None and header.file in self.remote:
            return None
        return Span(regular_file(self.directory, header.file), start)

    def _stored(self, name: str) -> tuple[TensorHeader, int]:
        """The header of tensor `name`, and the position of its first byte."""
        header = self.tensors.get(name)
        if header is None:
            raise CheckpointError(
                f"{self.location} has no tensor {name!r}",
                hint="list its tensors with eyas inspect",
            )
        if header.start is None:
            raise CheckpointError(f"{self.place(name)} is a header without bytes")
        return header, header.start

    def keep(self, name: str, raw: bytes) -> None:
        """Takes `raw` for the bytes of tensor `name` from now on, without its file."""
        self._maps[name] = raw

    def has_bytes(self, name: str) -> bool:
        """Whether the bytes of tensor `name` can be asked for: it is more than a header."""
        header = self.tensors.get(name)
        return name in self._maps or (header is not None and header.start is not None)

    def read_bytes(self, name: str) -> bytes:
        """The bytes of tensor `name`, little-endian and row-major; raises CheckpointError."""
        return b"".join(self.chunks(name))

    def read_integers(self, name: str) -> list[int]:
        """The values of an integer or boolean tensor of at most 2**24 elements, row-major.

        Raises CheckpointError for another type, a larger tensor or a missing one.
        """
        header = self.tensors.get(name)
        if header is not None and header.dtype not in _INTEGER_CODES:
            raise CheckpointError(
                f"{self.place(name)} holds {header.dtype} numbers where integers are needed",
                hint="export it as int64",
            )
        if header is not None and header.nbytes > 8 * _MAX_INTEGERS:
            raise CheckpointError(
                f"{self.place(name)} has {header.nbytes} bytes, too many for a vocabulary map",
                hint="check that it is the right tensor",
            )
        if name not in self._maps:
            self._maps[name] = self.read_bytes(name)
        values = array(_INTEGER_CODES[self.tensors[name].dtype], self._maps[name])
        if sys.byteorder == "big":
            values.byteswap()
        return values.tolist()


def _pieces(file: BinaryIO, length: int, path: Path, name: str) -> Iterator[bytes]:
    """The next `length` bytes of `file`; raises CheckpointError where it has fewer."""
    while length:
        piece = file.read(min(length, _CHUNK))
        if not piece:
            raise CheckpointError(
                f"{path} ends {length} bytes before the end of tensor {name}",
                hint="fetch or export the file again",
            )
        length -= len(piece)
        yield piece


def open_checkpoint(location: str | Path, *, weights: bool = False) -> Checkpoint:
    """The checkpoint at `location`, without reading a tensor.

    `location` is a directory, a single ``.safetensors`` or ``.bin`` file with config.json beside
    it, a ``.gguf`` file, or a Hub id (``org/name``, ``org/name@revision``, ``hf://…``). Of a Hub
    id only headers are fetched; say `weights` where all of them will be read, and they are kept in
    the Hub's cache. Raises CheckpointError when it is missing or unsound, FetchError when the Hub
    cannot be reached.
    """
    typed = str(location)
    place = locate(location, Part.WEIGHTS if weights else Part.HEADERS)
    if place.file is not None and place.file.endswith(GGUF_SUFFIX):
        return _open_gguf(typed, place)
    config = read_json_object(place.directory / "config.json", hint=_CONFIG_HINT)
    require_bounded(config, "config.json")
    shards = read_shards(place.directory, place.file, place.repository)
    return Checkpoint(
        location=typed,
        directory=place.directory,
        config=config,
        config_file="config.json",
        tensors=shards.tensors,
        files=shards.files,
        revision=place.revision,
        other_files=shards.other_files,
        repository=place.repository,
        remote=shards.remote,
    )


def _open_gguf(location: str, place: Place) -> Checkpoint:
    file = place.file or ""
    config, tensors, types = read_gguf(place.directory, file)
    require_bounded(config, file)
    return Checkpoint(
        location=location,
        directory=place.directory,
        config=config,
        config_file=file,
        tensors=tensors,
        files=(file,),
        revision=place.revision,
        key_types=types,
    )
