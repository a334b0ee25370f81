"""Pickles beside, instead of, or under the name of weights: none is ever run."""

from __future__ import annotations

import json
import os
import pickle
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.checkpoint.torch_archive import (
    Lie,
    about,
    archive,
    honest,
    number,
    numbers,
    table,
    tensor,
    text,
    weights,
)

from eyas.checkpoint import open_checkpoint
from eyas.cli import main
from eyas.errors import CheckpointError

PICKLED = "pytorch_model.bin"


class Touches:
    """Pickled, it makes `path` in whoever loads it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.fixture
def trap(tmp_path: Path) -> Any:
    """The bytes of a pickle that leaves a trace, and the test that it left none."""
    trace = tmp_path / "trace"
    raw = pickle.dumps(Touches(trace))
    pickle.loads(raw)
    assert trace.exists()  # it works
    trace.unlink()
    yield raw
    assert not trace.exists()


@pytest.fixture
def place(drafter: Path) -> Path:
    """A drafter without weights: a test writes them as a pickle."""
    (drafter / "model.safetensors").unlink()
    return drafter


@pytest.mark.parametrize("name", ["model.pt", "eagle.pth", "epoch3.bin"])
def test_weights_that_are_pickled_under_another_name(
    place: Path, refused: Any, trap: bytes, name: str
) -> None:
    (place / name).write_bytes(trap)

    error = refused(place, CheckpointError)

    assert f"only as {name}" in error.message
    assert error.hint == "save them as model.safetensors"


def test_a_bare_pickle(place: Path, refused: Any, trap: bytes) -> None:
    (place / PICKLED).write_bytes(trap)

    assert "is no archive that torch.save writes" in refused(place, CheckpointError).message


def test_a_pickle_under_another_name(drafter: Path, refused: Any, trap: bytes) -> None:
    (drafter / "model.safetensors").write_bytes(trap)

    assert "is not a sound safetensors file" in refused(drafter, CheckpointError).message


def test_a_pickle_that_an_index_names(drafter: Path, refused: Any, trap: bytes) -> None:
    (drafter / PICKLED).write_bytes(trap)
    index = {"weight_map": {"fc.weight": "model.safetensors", "d2t": PICKLED}}
    (drafter / "model.safetensors.index.json").write_text(json.dumps(index))

    assert PICKLED in refused(drafter, CheckpointError).message


def test_a_pickle_beside_the_weights_is_left_alone(drafter: Path) -> None:
    os.mkfifo(drafter / PICKLED)  # whoever opens it waits for ever

    assert open_checkpoint(drafter).read_integers("d2t") == [0, 3]


def command(function: bytes) -> Callable[[bytes], bytes]:
    """A pickle that calls `function`, which is on top of the stack, with a shell's command."""
    return lambda shell: b"\x80\x02" + function + shell + b"\x85R."


# Each runs `shell`, a text that is a command, in whoever loads it.
ATTACKS: dict[str, Callable[[bytes], bytes]] = {
    "GLOBAL": command(b"cos\nsystem\n"),
    "GLOBAL, of another name": command(b"cposix\nsystem\n"),
    "STACK_GLOBAL": command(text("os") + text("system") + b"\x93"),
    "INST": lambda shell: b"\x80\x02(" + shell + b"ios\nsystem\n.",
    "OBJ": lambda shell: b"\x80\x02(cos\npopen\n" + shell + b"o.",
    "NEWOBJ": lambda shell: (
        b"\x80\x02cbuiltins\ntuple\ncbuiltins\nmap\ncos\nsystem\n]" + shell + b"a\x86\x81\x85\x81."
    ),
    "eval": lambda shell: (
        b"\x80\x02cbuiltins\neval\n"
        + text("__import__('os').system(s)")
        + b"}"
        + text("s")
        + shell
        + b"s\x86R."
    ),
    "getattr": lambda shell: (
        b"\x80\x02cbuiltins\ngetattr\ncbuiltins\n__import__\n"
        + text("os")
        + b"\x85R"
        + text("system")
        + b"\x86R"
        + shell
        + b"\x85R."
    ),
    "among the tensors": lambda shell: (
        b"\x80\x02}(" + text("a") + number(1) + text("b") + b"cos\nsystem\n" + shell + b"\x85Ru."
    ),
    "as a key": lambda shell: b"\x80\x02}cos\nsystem\n" + shell + b"\x85RK\x01s.",
    "thrown away": lambda shell: b"\x80\x02cos\nsystem\n" + shell + b"\x85R0}.",
    "BUILD with __setstate__": lambda shell: (
        b"\x80\x02cfunctools\npartial\n"
        + b"cos\nsystem\n\x85R(cos\nsystem\n("
        + shell
        + b"t}Ntb)R."
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_program_that_runs_a_command(
    attack: str, place: Path, tmp_path: Path, refused: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace"
    program = ATTACKS[attack](text(f"touch {trace}"))
    finished = pickle.loads(program)
    getattr(finished, "wait", getattr(finished, "close", int))()
    assert trace.exists()  # it works
    trace.unlink()
    (place / PICKLED).write_bytes(archive(weights(program)))

    message = refused(place, CheckpointError).message
    codes = [main([verb, str(place)]) for verb in ("inspect", "check")]
    said = capsys.readouterr().err

    assert "is a pickle of more than weights" in message
    assert "nothing of it was run" in message
    assert codes == [2, 2]
    assert "Traceback" not in said
    assert not trace.exists()


TENSOR_NAME = b"ctorch._utils\n_rebuild_tensor_v2\n"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        pytest.param(b"", "cut off, or no pickle", id="nothing"),
        pytest.param(b"\x80\x02}", "cut off, or no pickle", id="no end"),
        pytest.param(table(("a", tensor()))[:-40], "cut off, or no pickle", id="cut off"),
        pytest.param(b"\x80\x02X\xff\xff\xff\xffa.", "cut off, or no pickle", id="text too long"),
        pytest.param(b"\x80\x02X\2\0\0\0\xff\xfe.", "cut off, or no pickle", id="no UTF-8"),
        pytest.param(b"\xff\xff.", "cut off, or no pickle", id="no operation"),
        pytest.param(b"\x80\x02cos\n", "cut off, or no pickle", id="half a name"),
        pytest.param(b"\x80\x02.", "takes from an empty stack", id="stack empty"),
        pytest.param(b"\x80\x02R.", "takes from an empty stack", id="call of nothing"),
        pytest.param(b"\x80\x02(.", "takes from an empty stack", id="a mark as the end"),
        pytest.param(b"\x80\x02t.", "takes from an empty stack", id="no mark"),
        pytest.param(b"\x80\x02h\x07.", "recalls what it never had", id="memory empty"),
        pytest.param(b"\x80\x02}(K\1u.", "a key without a value", id="key alone"),
        pytest.param(b"\x80\x02](K\1K\1u.", "adds to what is no dict", id="items of a list"),
        pytest.param(b"\x80\x02}K\1a.", "adds to what is no list", id="append to a table"),
        pytest.param(b"\x80\x02}(N)u.", "keys are no texts", id="key of nothing"),
        pytest.param(b"\x80\x02}()K\1u.", "keys are no texts", id="tuple as key"),
        pytest.param(b"\x80\x02}(K\1NK\1Nu.", "the key '1' occurs twice", id="key twice"),
        pytest.param(b"\x80\x02K\1Q.", "what is no storage", id="no storage"),
        pytest.param(b"\x80\x02K\1K\1\x85R.", "calls what is no part", id="call of a number"),
        pytest.param(b"\x80\x02" + TENSOR_NAME + b"K\1R.", "calls what is no", id="no arguments"),
        pytest.param(b"\x80\x02ctorch\nFloatStorage\n)R.", "calls what", id="call of a type"),
        pytest.param(b"\x80\x02ctorch\nload\n)R.", "names 'torch.load'", id="torch.load"),
        pytest.param(b"\x80\x02ctorch._utils\n_rebuild\n.", "names 'torch._utils", id="a helper"),
        pytest.param(b"\x80\x02ctorch\n_utils._rebuild_x\n.", "names", id="a dotted name"),
        pytest.param(
            b"\x80\x02" + TENSOR_NAME + b"}" + text("__code__") + b"Nsb.",
            "sets attributes",
            id="attributes of a function",
        ),
        pytest.param(
            b"\x80\x02" + TENSOR_NAME + b"(N}" + text("__code__") + b"Nstb.",
            "sets attributes",
            id="slots of a function",
        ),
        pytest.param(
            b"\x80\x02ccollections\nOrderedDict\n}\x85R.", "a table from", id="table of something"
        ),
        pytest.param(b"\x80\x02\x82\x01.", "the operation EXT1", id="extension registry"),
        pytest.param(b"\x80\x02Pa\n.", "the operation PERSID", id="another storage"),
        pytest.param(b"\x80\x05\x97.", "the operation NEXT_BUFFER", id="a buffer"),
        pytest.param(b"\x80\x04}\x94.", "the operation MEMOIZE", id="protocol 4"),
        pytest.param(b"\x80\x02].", "holds a list, and a drafter is", id="a list"),
        pytest.param(b"\x80\x02N.", "holds nothing, and a drafter is", id="nothing at all"),
        pytest.param(table(("a", number(3))), "a number under 'a'", id="a number"),
        pytest.param(table(("a", b"}")), "a table under 'a'", id="a table"),
        pytest.param(table(("model", table(("a", tensor()))[2:-1])), "loads nothing", id="nested"),
        pytest.param(table(("a\n", tensor())), "control characters", id="a name of two lines"),
        pytest.param(table(("a" * 600, tensor())), "in 600 characters", id="a long name"),
        pytest.param(b"\x80\x02}(K\1" + tensor() + b"u.", "an entry named 1", id="no name"),
    ],
)
def test_a_program_that_is_no_table_of_weights(
    program: bytes, reason: str, place: Path, refused: Any
) -> None:
    (place / PICKLED).write_bytes(archive(weights(program)))

    assert reason in refused(place, CheckpointError).message


BOMBS = {
    "tuples of tuples": b"\x80\x02)" + b"q\0h\0\x86" * 80_000 + b".",
    "lists in lists": b"\x80\x02" + b"]" * 130_000 + b"a" * 129_999 + b".",
    "tuples in tuples": b"\x80\x02)" + b"\x85" * 260_000 + b".",
    "tables in a table": b"\x80\x02}" + b"K\1}" * 80_000 + b"s" * 80_000 + b".",
    "a list in itself": b"\x80\x02]q\0h\0a.",
    "marks": b"\x80\x02" + b"(" * 260_000 + b".",
    "many steps": b"\x80\x02" + b"N" * 300_000 + b".",
    "a far place of the memory": b"\x80\x02]r\xff\xff\xff\xff.",
    "a long number": b"\x80\x02\x8a\xff" + b"\x7f" * 255 + b".",
    "a key of a long number": b"\x80\x02}" + 2 * (b"\x8a\xff" + b"\x7f" * 255 + b"Ns") + b".",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_program_that_swells(bomb: str, place: Path, refused: Any) -> None:
    (place / PICKLED).write_bytes(archive(weights(BOMBS[bomb])))

    refused(place, CheckpointError)


def test_a_description_beyond_every_drafter_is_not_read(place: Path, refused: Any) -> None:
    (place / PICKLED).write_bytes(archive(weights(b"N" * (8 * 2**20 + 1))))

    assert "describes its tensors in 8388609 bytes" in refused(place, CheckpointError).message


@pytest.mark.parametrize(
    ("built", "reason"),
    [
        pytest.param(tensor(key="7"), "are in no record", id="no record"),
        pytest.param(tensor(key="../data.pkl"), "are in no record", id="a path as key"),
        pytest.param(tensor(count=7), "a record of 24 bytes, not its own", id="too many numbers"),
        pytest.param(tensor(count=-6), "a record of 24 bytes", id="fewer than none"),
        pytest.param(tensor(shape=numbers(2, 4)), "rows do not follow", id="another shape"),
        pytest.param(tensor(shape=numbers(3, 3)), "reaches beyond its storage", id="too large"),
        pytest.param(tensor(shape=numbers(2, -3)), "no shape of whole", id="negative"),
        pytest.param(tensor(shape=b"]"), "no shape of whole numbers", id="a list as shape"),
        pytest.param(tensor(shape=text("23")), "no shape of whole numbers", id="a text as shape"),
        pytest.param(tensor(shape=b"(\x88K\3t"), "no shape of whole numbers", id="a flag"),
        pytest.param(tensor(shape=numbers(6)), "no shape of whole numbers", id="too few sizes"),
        pytest.param(
            tensor(shape=numbers(*2 * [2**31 - 1]), strides=numbers(2**31 - 1, 1)),
            "reaches beyond its storage",
            id="shape overflows",
        ),
        pytest.param(
            tensor(shape=numbers(*[1] * 65), strides=numbers(*[1] * 65)), "no shape", id="65 sizes"
        ),
        pytest.param(tensor(offset=number(1)), "reaches beyond its storage", id="offset too far"),
        pytest.param(tensor(offset=number(-1)), "no shape of whole", id="offset before"),
        pytest.param(tensor(offset=b"N"), "no shape of whole numbers", id="no offset"),
        pytest.param(tensor(strides=numbers(1, 2)), "rows do not follow", id="transposed"),
        pytest.param(tensor(strides=numbers(0, 1)), "rows do not follow", id="expanded"),
        pytest.param(tensor(kind="torch\nfloat8_e4m3fn"), "no type that", id="a type as storage"),
        pytest.param(tensor(kind="torch\nQInt8Storage"), "names 'torch.QInt8", id="quantised"),
        pytest.param(tensor(kind="torch.storage\nUntypedStorage"), "no type that", id="untyped"),
        pytest.param(tensor(rest=b"}" + text("conj") + b"\x88s"), "conjugates", id="conjugated"),
        pytest.param(tensor(rest=b"NN"), "what makes no tensor", id="more arguments"),
        pytest.param(TENSOR_NAME + b")R", "what makes no tensor", id="no arguments"),
        pytest.param(TENSOR_NAME + b"(NNNNNNtR", "what makes no tensor", id="no storage"),
        pytest.param(b"ctorch._utils\n_rebuild_parameter\n)R", "holds nothing", id="no parameter"),
    ],
)
def test_a_tensor_that_lies(built: bytes, reason: str, place: Path, refused: Any) -> None:
    (place / PICKLED).write_bytes(archive(weights(table(("a", built)))))

    assert reason in refused(place, CheckpointError).message


SOUND = weights(table(("a", tensor())))


@pytest.mark.parametrize(
    ("lie", "end", "reason"),
    [
        pytest.param(about("data/0", header=10**6), {}, "is not where the directory", id="far"),
        pytest.param(about("data/0", header=2**32 - 2), {}, "is not where", id="beyond"),
        pytest.param(about("data/0", header=1), {}, "lies over another", id="inside another"),
        pytest.param(about("data/0", header=0), {}, "lies over another", id="the same place"),
        pytest.param(about("data/0", nbytes=25), {}, "lies over another", id="longer"),
        pytest.param(about("byteorder", nbytes=99), {}, "does not end where", id="into the end"),
        pytest.param(about("data/0", nbytes=2**31), {}, "does not end where", id="gigabytes"),
        pytest.param(about("data/0", nbytes=23), {}, "record of 23 bytes", id="shorter"),
        pytest.param(about("data/0", flags=1), {}, "is encrypted", id="encrypted"),
        pytest.param(about("data/0", own_flags=1), {}, "is packed, by its", id="encrypted inside"),
        pytest.param(about("data/0", method=8), {}, "is compressed", id="compressed"),
        pytest.param(about("data/0", packed=20), {}, "is compressed", id="packed"),
        pytest.param(about("data/0", disk=1), {}, "on another disk", id="disk"),
        pytest.param(about("data/0", folder=True), {}, "marked as a folder", id="folder"),
        pytest.param(about("data/0", own_name="archive/data/1"), {}, "another name", id="names"),
        pytest.param(about("data/0", name="archive/data.pkl"), {}, "a record twice", id="twice"),
        pytest.param(about("data/0", name="archive/../0"), {}, "leads elsewhere", id="upwards"),
        pytest.param(about("data/0", name="/etc/passwd"), {}, "leads elsewhere", id="absolute"),
        pytest.param(about("data/0", name="archive/a\\0"), {}, "leads elsewhere", id="backslash"),
        pytest.param(about("data/0", name="archive/a\n0"), {}, "leads elsewhere", id="lines"),
        pytest.param(about("data/0", name="other/data/0"), {}, "in one folder", id="two roots"),
        pytest.param(about("data/0", name="data"), {}, "in one folder", id="no root"),
        pytest.param(honest, {"more": 1}, "fewer records", id="more records"),
        pytest.param(honest, {"more": -1}, "more records", id="fewer records"),
        pytest.param(honest, {"more": 65531}, "zip64", id="as many as zip64 has"),
        pytest.param(honest, {"further": 1}, "is not where it says", id="directory further"),
        pytest.param(honest, {"longer": 1}, "is not where it says", id="directory longer"),
        pytest.param(honest, {"disks": 1}, "no archive of one piece", id="several disks"),
        pytest.param(honest, {"more": 2**40, "zip64": True}, "lists 1099511627780", id="2**40"),
        pytest.param(honest, {"longer": 2**40, "zip64": True}, "in 1099511", id="long directory"),
        pytest.param(honest, {"astray": 1, "zip64": True}, "not where it says", id="end astray"),
        pytest.param(honest, {"astray": 2**63, "zip64": True}, "not where", id="end far astray"),
        pytest.param(honest, {"disks": 1, "zip64": True}, "one piece", id="zip64, several disks"),
        pytest.param(
            about("data/0", header=2**64 - 1), {"zip64": True}, "is not where", id="zip64, far"
        ),
        pytest.param(
            about("data/0", nbytes=2**64 - 1), {"zip64": True}, "does not end", id="zip64, long"
        ),
    ],
)
def test_a_directory_that_lies(
    lie: Lie, end: dict[str, Any], reason: str, place: Path, refused: Any
) -> None:
    (place / PICKLED).write_bytes(archive(SOUND, lie, **end))

    assert reason in refused(place, CheckpointError).message


def test_the_same_archives_are_read_where_they_do_not_lie(place: Path) -> None:
    for raw in (archive(SOUND), archive(SOUND, zip64=True)):
        (place / PICKLED).write_bytes(raw)
        assert open_checkpoint(place).read_bytes("a") == bytes(24)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        pytest.param(archive(SOUND)[:-1], "may be cut off", id="cut off"),
        pytest.param(archive(SOUND)[:40], "may be cut off", id="cut off early"),
        pytest.param(archive(SOUND) + b"\0", "may be cut off", id="longer"),
        pytest.param(b"\0" + archive(SOUND), "is no archive", id="something before it"),
        pytest.param(b"", "is no archive", id="empty"),
        pytest.param(b"PK\3\4", "may be cut off", id="four bytes"),
        pytest.param(archive({"data/0": b""}), "has no data.pkl", id="no data.pkl"),
        pytest.param(archive(SOUND, order="big"), "byte order 'big'", id="big-endian"),
        pytest.param(archive(SOUND, order="x" * 65), "has 65 bytes", id="a long order"),
        pytest.param(archive({**SOUND, "constants.pkl": b""}), "TorchScript", id="TorchScript"),
        pytest.param(archive({**SOUND, ".data/version": b"11"}), "version '11'", id="version"),
    ],
)
def test_an_archive_of_another_kind(raw: bytes, reason: str, place: Path, refused: Any) -> None:
    (place / PICKLED).write_bytes(raw)

    assert reason in refused(place, CheckpointError).message


def _compressed(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in SOUND.items():
            packed.writestr(f"archive/{name}", data)


WRITERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "before 1.6": (
        lambda path: torch.save({"a": torch.zeros(2)}, path, _use_new_zipfile_serialization=False),
        "in the format of torch before 1.6",
    ),
    "nested": (lambda path: torch.save({"model": {"a": torch.zeros(2)}}, path), "under 'model'"),
    "beside a number": (
        lambda path: torch.save({"a": torch.zeros(2), "step": 3}, path),
        "holds a number under 'step'",
    ),
    "transposed": (lambda path: torch.save({"a": torch.zeros(2, 3).t()}, path), "rows do not"),
    "expanded": (lambda path: torch.save({"a": torch.zeros(1).expand(3)}, path), "rows do not"),
    "sparse": (lambda path: torch.save({"a": torch.eye(2).to_sparse()}, path), "a sparse tensor"),
    "conjugated": (
        lambda path: torch.save({"a": torch.zeros(2, dtype=torch.complex64).conj()}, path),
        "conjugates or negates",
    ),
    "double complex": (
        lambda path: torch.save({"a": torch.zeros(2, dtype=torch.complex128)}, path),
        "names 'torch.ComplexDoubleStorage'",
    ),
    "without numbers": (
        lambda path: torch.save({"a": torch.zeros(2, device="meta")}, path),
        "a tensor without numbers",
    ),
    "a module": (lambda path: torch.save(torch.nn.Linear(2, 2), path), "names 'torch.nn.modules"),
    "a tensor alone": (lambda path: torch.save(torch.zeros(2), path), "holds a tensor, and"),
    "a later protocol": (
        lambda path: torch.save({"a": torch.zeros(2)}, path, pickle_protocol=4),
        "the operation FRAME",
    ),
    "compressed": (_compressed, "is compressed"),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_what_torch_writes_and_eyas_does_not_read(kind: str, place: Path, refused: Any) -> None:
    write, reason = WRITERS[kind]
    write(place / PICKLED)

    assert reason in refused(place, CheckpointError).message


@pytest.mark.parametrize("kind", ["before 1.6", "nested"])
def test_the_command_that_saves_it_anew_is_right(kind: str, place: Path, refused: Any) -> None:
    WRITERS[kind][0](place / PICKLED)
    hint = refused(place, CheckpointError).hint
    _, flag, *arguments = shlex.split(hint)
    subprocess.run([sys.executable, flag, *arguments], check=True, capture_output=True)

    assert open_checkpoint(place).read_bytes("a") == bytes(8)
