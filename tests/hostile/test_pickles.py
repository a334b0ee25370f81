"""Pickles beside, instead of, or under the name of weights: none is ever run."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.checkpoint.torch_archive import (
    PICKLE,
    archive,
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
    (place / PICKLE).write_bytes(trap)

    assert "is no archive that torch.save writes" in refused(place, CheckpointError).message


def test_a_pickle_under_another_name(drafter: Path, refused: Any, trap: bytes) -> None:
    (drafter / "model.safetensors").write_bytes(trap)

    assert "is not a sound safetensors file" in refused(drafter, CheckpointError).message


def test_a_pickle_that_an_index_names(drafter: Path, refused: Any, trap: bytes) -> None:
    (drafter / PICKLE).write_bytes(trap)
    index = {"weight_map": {"fc.weight": "model.safetensors", "d2t": PICKLE}}
    (drafter / "model.safetensors.index.json").write_text(json.dumps(index))

    assert PICKLE in refused(drafter, CheckpointError).message


def test_a_pickle_beside_the_weights_is_left_alone(drafter: Path) -> None:
    os.mkfifo(drafter / PICKLE)  # whoever opens it waits for ever

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
    (place / PICKLE).write_bytes(archive(weights(program)))

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
    (place / PICKLE).write_bytes(archive(weights(program)))

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
    (place / PICKLE).write_bytes(archive(weights(BOMBS[bomb])))

    refused(place, CheckpointError)


def test_a_description_beyond_every_drafter_is_not_read(place: Path, refused: Any) -> None:
    (place / PICKLE).write_bytes(archive(weights(b"N" * (8 * 2**20 + 1))))

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
    (place / PICKLE).write_bytes(archive(weights(table(("a", built)))))

    assert reason in refused(place, CheckpointError).message
