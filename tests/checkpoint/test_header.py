"""Headers are judged as the safetensors library judges them, and read as it reads them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError, safe_open

from eyas.checkpoint.header import DTYPE_BITS, read_headers
from eyas.errors import CheckpointError

MUTANTS = 600


def entry(dtype: str, shape: Any, start: Any, stop: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def write(directory: Path, header: Any, data: bytes) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    raw = len(text).to_bytes(8, "little") + text + data
    (directory / "model.safetensors").write_bytes(raw)


def by_the_library(directory: Path) -> dict[str, tuple[str, tuple[int, ...]]] | None:
    """Type and shape of every tensor, in the order of the bytes; None where it refuses."""
    try:
        with safe_open(directory / "model.safetensors", framework="np") as opened:
            slices = {name: opened.get_slice(name) for name in opened.offset_keys()}
            return {n: (s.get_dtype(), tuple(s.get_shape())) for n, s in slices.items()}
    except SafetensorError:
        return None


def by_eyas(directory: Path) -> dict[str, tuple[str, tuple[int, ...]]] | None:
    try:
        headers = read_headers(directory, "model.safetensors")
    except CheckpointError:
        return None
    return {name: (header.dtype, header.shape) for name, header in headers.items()}


SOUND = {
    "__metadata__": {"format": "pt"},
    "b": entry("BF16", [2, 3], 0, 12),
    "a": entry("I64", [1], 12, 20),
    "empty": entry("F32", [0, 7], 20, 20),
    "scalar": entry("U8", [], 20, 21),
}


def test_a_sound_file_is_read_as_the_library_reads_it(tmp_path: Path) -> None:
    write(tmp_path, SOUND, bytes(21))

    expected = by_the_library(tmp_path)

    assert expected is not None
    assert by_eyas(tmp_path) == expected
    assert [h.start for h in read_headers(tmp_path, "model.safetensors").values()] == [
        len(json.dumps(SOUND)) + 8 + offset for offset in (0, 12, 20, 20)
    ]


@pytest.mark.parametrize("dtype", sorted(DTYPE_BITS))
def test_every_type_has_the_librarys_width(tmp_path: Path, dtype: str) -> None:
    nbytes = DTYPE_BITS[dtype]  # of eight elements
    write(tmp_path, {"x": entry(dtype, [8], 0, nbytes)}, bytes(nbytes))
    assert by_eyas(tmp_path) == by_the_library(tmp_path) == {"x": (dtype, (8,))}

    write(tmp_path, {"x": entry(dtype, [8], 0, nbytes + 1)}, bytes(nbytes + 1))
    assert by_eyas(tmp_path) is by_the_library(tmp_path) is None


@pytest.mark.parametrize(
    ("header", "data"),
    [
        pytest.param(b' {"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', 1, id="space"),
        pytest.param(b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}} \n', 1, id="after"),
        pytest.param(b'{"x":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}}', 1, id="1.0"),
        pytest.param(b'{"x":{"dtype":"U8","shape":[true],"data_offsets":[0,1]}}', 1, id="true"),
        pytest.param(b'{"x":{"dtype":"U8","shape":[NaN],"data_offsets":[0,1]}}', 1, id="NaN"),
        pytest.param(b'{"x":{"dtype":"U8","shape":[01],"data_offsets":[0,1]}}', 1, id="01"),
        pytest.param({"x": entry("F4", [3], 0, 1)}, 1, id="half a byte is cut"),
        pytest.param({"x": entry("F4", [3], 0, 2)}, 2, id="half a byte is filled"),
        pytest.param({"x": entry("U8", [2**63, 2**63, 0], 0, 0)}, 0, id="overflow, then zero"),
        pytest.param({"x": entry("U8", [0, 2**63, 2**63], 0, 0)}, 0, id="zero, then overflow"),
        pytest.param({"x": entry("U8", [1], 0, 1) | {"more": 1}}, 1, id="a field more"),
        pytest.param({"x": {"dtype": "U8", "shape": [1]}}, 1, id="a field less"),
        pytest.param({"__metadata__": None}, 0, id="metadata null"),
        pytest.param({"__metadata__": {}}, 0, id="metadata empty"),
        pytest.param({"__metadata__": {"a": 1}}, 0, id="metadata a number"),
        pytest.param({"__metadata__": []}, 0, id="metadata a list"),
        pytest.param({}, 0, id="no tensors"),
        pytest.param(b"{}x", 0, id="text after it"),
        pytest.param(b'{"__metadata__": {"a": "\\ud800"}}', 0, id="half a character"),
    ],
)
def test_the_edges_are_the_librarys(tmp_path: Path, header: Any, data: int) -> None:
    write(tmp_path, header, bytes(data))

    assert by_eyas(tmp_path) == by_the_library(tmp_path)


def test_mutants_are_judged_as_the_library_judges_them(tmp_path: Path) -> None:
    dice = random.Random(11)
    text = json.dumps(SOUND, separators=(",", ":"))
    accepted = 0
    for _ in range(MUTANTS):
        mutant = text
        for _ in range(dice.randint(1, 2)):
            digits = [i for i, c in enumerate(mutant) if c in "0123456789[]{},:"]
            at = dice.choice(digits)
            mutant = mutant[:at] + dice.choice("0123456789-") + mutant[at + 1 :]
        write(tmp_path, mutant.encode(), bytes(21))
        expected = by_the_library(tmp_path)
        assert by_eyas(tmp_path) == expected, mutant
        accepted += expected is not None
    assert 0 < accepted < MUTANTS


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{}}', "'x' occurs twice"),
        ({"x." * 300: entry("U8", [1], 0, 1)}, "names a tensor in 600 characters: 'x.x."),
        ({"x": entry("U9", [1], 0, 1)}, "'x' has the type 'U9', which is none"),
        ({"x": entry("U8", [2], 0, 1)}, "'x' spans 1 bytes, not its shape's"),
        ({"x": entry("U8", [-1], 0, 1)}, "'x' has no shape or offsets of whole numbers"),
        ({"x": entry("U8", [1], 1, 2)}, "the bytes of 'x' overlap others or leave a gap"),
        ({"x": entry("U8", [0], 0, 0)}, "has 69 bytes where its header accounts for 68"),
    ],
)
def test_a_refusal_says_why(tmp_path: Path, header: Any, reason: str) -> None:
    write(tmp_path, header, bytes(1))

    with pytest.raises(CheckpointError) as caught:
        read_headers(tmp_path, "model.safetensors")

    assert reason in caught.value.message
    assert str(tmp_path / "model.safetensors") in caught.value.message


def test_a_header_beyond_the_formats_bound_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    with file.open("wb") as raw:
        raw.write((100_000_001).to_bytes(8, "little"))
        raw.truncate(2**30)

    with pytest.raises(CheckpointError, match="100000001 bytes is longer than 100000000"):
        read_headers(tmp_path, "model.safetensors")
