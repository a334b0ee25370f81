"""What torch.save writes, read as torch.load(weights_only=True) reads it, to the byte."""

from __future__ import annotations

import json
import random
import shutil
import struct
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.checkpoint.torch_archive import PICKLE, archive, table, tail, tensor, weights
from torch import Tensor, nn

from eyas.checkpoint import Checkpoint, Format, open_checkpoint
from eyas.errors import CheckpointError

INDEX = "pytorch_model.bin.index.json"
DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.complex64: "C64",
    torch.uint16: "U16",
    torch.uint32: "U32",
    torch.uint64: "U64",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.float8_e8m0fnu: "F8_E8M0",
    torch.float8_e4m3fnuz: "F8_E4M3FNUZ",
    torch.float8_e5m2fnuz: "F8_E5M2FNUZ",
}
MUTANTS = 1000


def noise(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Bytes of chance (of a flag, zeros and ones) as a tensor."""
    count = torch.empty(shape, dtype=dtype).numel()
    most = 2 if dtype is torch.bool else 256
    raw = torch.randint(0, most, (count * dtype.itemsize,), dtype=torch.uint8)
    return raw.view(dtype).reshape(shape)


def saved(folder: Path, value: Any, **options: Any) -> Path:
    (folder / "config.json").write_text(json.dumps({"hidden_size": 4}))
    torch.save(value, folder / PICKLE, **options)
    return folder


def raw_of(held: Tensor) -> bytes:
    return held.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()


def by_torch(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    return {n: (DTYPES[t.dtype], tuple(t.shape), raw_of(t)) for n, t in loaded.items()}


def by_eyas(checkpoint: Checkpoint) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {
        name: (header.dtype, header.shape, checkpoint.read_bytes(name))
        for name, header in checkpoint.tensors.items()
    }


def opened(folder: Path) -> Checkpoint | None:
    try:
        return open_checkpoint(folder)
    except CheckpointError:
        return None


def shared() -> dict[str, Tensor]:
    whole = noise(6, 4)
    return {"whole": whole, "rows": whole[2:5], "row": whole[3], "cell": whole[5, 3], "tied": whole}


def module() -> Any:
    state = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).state_dict()
    assert state._metadata  # attributes of a table, which are set by the pickle
    return state


FORMS: dict[str, Callable[[], Any]] = {
    "dict": lambda: {"a": noise(2, 3), "b": noise(4)},
    "OrderedDict": lambda: OrderedDict(a=noise(2, 3), b=noise(1)),
    "state_dict of a module": module,
    "parameters": lambda: {"a": nn.Parameter(noise(2, 3)), "b": nn.Parameter(noise(2), False)},
    "shared storages and views": shared,
    "empty": lambda: {"a": torch.empty(0), "b": torch.empty(0, 7), "c": torch.empty(3, 0, 2)},
    "scalar": lambda: {"a": torch.tensor(2.5), "b": torch.tensor(7), "c": torch.tensor(True)},
    "sizes of one, with odd strides": lambda: {"a": noise(3, 1).t(), "b": noise(2, 6)[1:, :4]},
    "no tensors": dict,
    "requires grad": lambda: {"a": noise(2).requires_grad_()},
    "many": lambda: {f"layers.{i}.weight": noise(i % 5, 3) for i in range(400)},
    "long and odd names": lambda: {"x" * 500: noise(1), "fc weight/ä": noise(1), "": noise(2)},
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_read_as_torch_reads_it(form: str, tmp_path: Path) -> None:
    checkpoint = open_checkpoint(saved(tmp_path, FORMS[form]()))

    assert by_eyas(checkpoint) == by_torch(tmp_path / PICKLE)
    assert list(checkpoint.tensors) == list(torch.load(tmp_path / PICKLE, weights_only=True))
    assert checkpoint.format is Format.PICKLE
    assert checkpoint.files == (PICKLE,)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_each_type_is_read_as_torch_reads_it(dtype: torch.dtype, tmp_path: Path) -> None:
    base = noise(5, 3, dtype=dtype)
    checkpoint = open_checkpoint(saved(tmp_path, {"a": base, "view": base[1:3]}))

    assert by_eyas(checkpoint) == by_torch(tmp_path / PICKLE)
    assert checkpoint.tensors["a"].dtype == DTYPES[dtype]


def test_integers_are_the_numbers_that_were_saved(tmp_path: Path) -> None:
    ids = torch.tensor([0, 5, -2, 2**40])
    checkpoint = open_checkpoint(saved(tmp_path, {"d2t": ids, "t2d": ids > 0}))

    assert checkpoint.read_integers("d2t") == ids.tolist()
    assert checkpoint.read_integers("t2d") == [0, 1, 0, 1]
    assert checkpoint.place("d2t") == f"{PICKLE} :: d2t"


def test_an_archive_without_padding_and_order_is_read_too(tmp_path: Path) -> None:
    saved(tmp_path, {})
    records = weights(table(("a", tensor())), struct.pack("<6f", *range(6)))
    for raw in (archive(records, order=None), archive(records, zip64=True)):
        (tmp_path / PICKLE).write_bytes(raw)
        read = by_eyas(open_checkpoint(tmp_path))
        assert read == by_torch(tmp_path / PICKLE)
        assert read["a"] == ("F32", (2, 3), records["data/0"])


def test_a_tensor_behind_gigabytes(tmp_path: Path) -> None:
    saved(tmp_path, {})
    far, count = 5 * 2**30, 5 * 2**28
    first = tensor(count=count, shape=b"J" + struct.pack("<i", count) + b"\x85", strides=b"K\1\x85")
    program = table(("a", first), ("b", tensor(key="1")))
    payload = struct.pack("<6f", *range(6))
    names = {"data.pkl": program, "version": b"3\n", "data/0": None, "data/1": payload}
    directory, at = b"", 0
    with (tmp_path / PICKLE).open("wb") as file:  # a hole where the first tensor is
        for name, data in names.items():
            full, size = f"archive/{name}".encode(), far if data is None else len(data)
            file.seek(at)
            file.write(b"PK\3\4" + bytes(22) + struct.pack("<HH", len(full), 0) + full)
            file.write(data or b"")
            extra = struct.pack("<HHQQQ", 1, 24, size, size, at)
            fields = (0xFFFFFFFF, 0xFFFFFFFF, len(full), len(extra), 0, 0, 0, 0, 0xFFFFFFFF)
            directory += b"PK\1\2" + bytes(16) + struct.pack("<IIHHHHHII", *fields) + full + extra
            at += 30 + len(full) + size
        file.seek(at)
        file.write(directory + tail(len(names), at, len(directory), zip64=True))

    checkpoint = open_checkpoint(tmp_path)
    loaded = torch.load(tmp_path / PICKLE, weights_only=True, mmap=True)

    assert checkpoint.tensors["a"].nbytes == far == loaded["a"].nbytes
    assert checkpoint.read_bytes("b") == payload == raw_of(loaded["b"])


def test_mutants_are_read_as_torch_reads_them_or_refused(tmp_path: Path) -> None:
    saved(tmp_path, {"a": noise(2, 3), "d2t": torch.arange(4), "p": nn.Parameter(noise(2))})
    sound, dice = (tmp_path / PICKLE).read_bytes(), random.Random(5)
    with zipfile.ZipFile(tmp_path / PICKLE) as unpacked:
        label = unpacked.getinfo("pytorch_model/.data/serialization_id")  # of which nothing hangs
        told = [*range(label.header_offset), *range(unpacked.start_dir, len(sound))]
    accepted = 0
    for _ in range(MUTANTS):
        mutant = bytearray(sound)
        for _ in range(dice.randint(1, 2)):
            mutant[dice.choice(told)] = dice.randrange(256)
        (tmp_path / PICKLE).write_bytes(mutant)
        checkpoint = opened(tmp_path)
        if checkpoint is not None:
            accepted += 1
            assert by_eyas(checkpoint) == by_torch(tmp_path / PICKLE)
    assert 0 < accepted < MUTANTS


def test_the_shards_of_an_index(tmp_path: Path) -> None:
    place = sharded(tmp_path)

    checkpoint = open_checkpoint(place)

    assert checkpoint.files == ("a.bin", "b.bin")
    assert checkpoint.place("d2t") == "b.bin :: d2t"
    assert checkpoint.read_integers("d2t") == [7]
    assert checkpoint.rival is None
    assert checkpoint.index == INDEX

    shutil.copy(place / "b.bin", place / "old.bin")  # an index counts for nothing with pickles
    assert open_checkpoint(place).rival == "old.bin"


@pytest.mark.parametrize(
    ("weight_map", "reason"),
    [
        ({"fc.weight": "a.bin", "d2t": "a.bin"}, "places tensor 'd2t' in a.bin, which does not"),
        ({"fc.weight": "a.bin", "d2t": "../b.bin"}, "which is no file name beside it"),
        ({"fc.weight": "a.bin", "d2t": "c.bin"}, "lacks c.bin, which pytorch_model.bin.index.json"),
        ({}, "has no weight_map"),
    ],
)
def test_an_index_that_lies(weight_map: dict[str, str], reason: str, tmp_path: Path) -> None:
    place = sharded(tmp_path)
    (place / INDEX).write_text(json.dumps({"weight_map": weight_map}))

    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(place)

    assert reason in caught.value.message


def test_a_link_that_leaves_the_directory_is_refused(tmp_path: Path) -> None:
    place = sharded(tmp_path)
    (place / "b.bin").rename(tmp_path / "b.bin")
    (place / "b.bin").symlink_to(tmp_path / "b.bin")

    with pytest.raises(CheckpointError, match="a link that leaves its directory"):
        open_checkpoint(place)


def test_a_single_file_takes_the_config_beside_it(tmp_path: Path) -> None:
    saved(tmp_path, {"a": noise(2)})
    (tmp_path / PICKLE).rename(tmp_path / "epoch3.bin")
    with pytest.raises(CheckpointError, match=r"has its weights only as epoch3\.bin"):
        open_checkpoint(tmp_path)

    checkpoint = open_checkpoint(tmp_path / "epoch3.bin")

    assert by_eyas(checkpoint) == by_torch(tmp_path / "epoch3.bin")


def test_what_a_trainer_keeps_of_itself_is_no_rival(tmp_path: Path) -> None:
    saved(tmp_path, {"a": noise(2)})
    (tmp_path / "training_args.bin").write_bytes(b"never opened")
    (tmp_path / "optimizer.bin").write_bytes(b"never opened")

    assert open_checkpoint(tmp_path).rival is None


def sharded(tmp_path: Path) -> Path:
    place = tmp_path / "sharded"
    place.mkdir()
    parts = {"a.bin": {"fc.weight": noise(2, 3)}, "b.bin": {"d2t": torch.tensor([7])}}
    for file, tensors in parts.items():
        torch.save(tensors, place / file)
    weight_map = {name: file for file, tensors in parts.items() for name in tensors}
    (place / "config.json").write_text(json.dumps({"hidden_size": 4}))
    (place / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return place
