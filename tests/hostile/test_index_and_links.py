"""Indexes that name what is not there, and links that lead away."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from eyas.checkpoint import open_checkpoint
from eyas.errors import CheckpointError

INDEX = "model.safetensors.index.json"
SOUND = {"fc.weight": "model.safetensors", "d2t": "model.safetensors"}


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({"weight_map": SOUND | {"x": "model-2.safetensors"}}, "lacks model-2.safetensors"),
        ({"weight_map": SOUND | {"x": "../model.safetensors"}}, "no file name beside it"),
        ({"weight_map": SOUND | {"x": "/etc/passwd"}}, "no file name beside it"),
        ({"weight_map": SOUND | {"x": "sub/model.safetensors"}}, "no file name beside it"),
        ({"weight_map": SOUND | {"x": "..\\model.safetensors"}}, "no file name beside it"),
        ({"weight_map": SOUND | {"x": ".."}}, "no file name beside it"),
        ({"weight_map": SOUND | {"x": ""}}, "no file name beside it"),
        ({"weight_map": SOUND | {"x": "a\0b"}}, "no file name beside it"),
        ({"weight_map": SOUND | {"x": 7}}, "no file name beside it"),
        ({"weight_map": SOUND | {"x": None}}, "no file name beside it"),
        ({"weight_map": SOUND | {"x": "config.json"}}, "config.json is not a sound safetensors"),
        (
            {"weight_map": SOUND | {"x": "model.safetensors"}},
            "'x' in model.safetensors, which does",
        ),
        ({"weight_map": SOUND | {"x" * 5000: "model.safetensors"}}, "'xxx"),
        ({"weight_map": SOUND | {"x" * 5000: "y/" * 5000}}, "no file name beside it"),
        ({"weight_map": SOUND | {"x": "y" * 5000}}, "lacks yyy"),
        ({"weight_map": {}}, "has no weight_map"),
        ({"weight_map": ["model.safetensors"]}, "has no weight_map"),
        ({"metadata": {}}, "has no weight_map"),
    ],
)
def test_an_index_that_lies(
    drafter: Path, refused: Any, index: dict[str, Any], message: str
) -> None:
    (drafter / INDEX).write_text(json.dumps(index))

    assert message in refused(drafter, CheckpointError).message


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b'{"weight_map": NaN}',
        b'{"weight_map": {"a": "model.safetensors", "a": "model.safetensors"}}',
        b'{"weight_map":' * 50_000,
        b'{"weight_map": "\xff"}',
        b'{"weight_map": {"\xed\xa0\x80": "model.safetensors"}}',
    ],
    ids=lambda raw: repr(raw[:24]),
)
def test_an_index_that_is_broken(drafter: Path, refused: Any, raw: bytes) -> None:
    (drafter / INDEX).write_bytes(raw)

    assert INDEX in refused(drafter, CheckpointError).message


@pytest.mark.parametrize("name", [INDEX, "shard.safetensors"])
@pytest.mark.parametrize("kind", ["directory", "fifo", "dangling link", "device"])
def test_an_index_or_shard_that_is_no_file(
    drafter: Path, refused: Any, name: str, kind: str
) -> None:
    (drafter / INDEX).write_text(json.dumps({"weight_map": {"x": "shard.safetensors"}}))
    (drafter / name).unlink(missing_ok=True)
    if kind == "directory":
        (drafter / name).mkdir()
    elif kind == "fifo":
        os.mkfifo(drafter / name)
    else:
        (drafter / name).symlink_to("nowhere" if kind == "dangling link" else "/dev/zero")

    assert name in refused(drafter, CheckpointError).message


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", INDEX])
def test_a_link_out_of_the_directory(
    drafter: Path, tmp_path: Path, refused: Any, name: str
) -> None:
    (drafter / INDEX).write_text(json.dumps({"weight_map": SOUND}))
    (drafter / name).rename(tmp_path / "elsewhere")
    (drafter / name).symlink_to(tmp_path / "elsewhere")

    error = refused(drafter, CheckpointError)

    assert "is a link that leaves its directory" in error.message


def test_a_link_in_a_circle(drafter: Path, refused: Any) -> None:
    (drafter / "config.json").unlink()
    (drafter / "config.json").symlink_to("config.json")
    refused(drafter, CheckpointError)


def test_a_link_within_the_directory_is_followed(drafter: Path) -> None:
    (drafter / "model.safetensors").rename(drafter / "epoch3.bin")
    (drafter / "model.safetensors").symlink_to("epoch3.bin")

    assert open_checkpoint(drafter).read_integers("d2t") == [0, 3]


def test_a_linked_directory_is_the_users_own_choice(drafter: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(drafter)

    assert open_checkpoint(tmp_path / "latest").read_integers("d2t") == [0, 3]


def test_the_hubs_cache_links_into_its_blobs_and_nowhere_else(
    drafter: Path, tmp_path: Path, refused: Any
) -> None:
    repository = tmp_path / "models--org--name"
    snapshot = repository / "snapshots" / "c0ffee"
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir()
    for name in ("config.json", "model.safetensors"):
        (drafter / name).rename(repository / "blobs" / name)
        (snapshot / name).symlink_to(Path("../../blobs") / name)
    assert open_checkpoint(snapshot).read_integers("d2t") == [0, 3]

    (repository / "blobs" / "model.safetensors").rename(tmp_path / "model.safetensors")
    (snapshot / "model.safetensors").unlink()
    (snapshot / "model.safetensors").symlink_to(tmp_path / "model.safetensors")
    assert "leaves its directory" in refused(snapshot, CheckpointError).message
