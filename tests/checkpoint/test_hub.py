"""Hub ids: how they are written, and what the cache gives without a connection."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eyas.checkpoint import TensorBytes, open_checkpoint, open_target, write_checkpoint
from eyas.checkpoint.hub import HubId, parse_hub_id
from eyas.errors import CheckpointError, TargetError

COMMIT = "c0ffee" * 6 + "abcd"


@pytest.mark.parametrize(
    ("text", "repo", "revision"),
    [
        ("org/name", "org/name", None),
        ("org/name@v1.0", "org/name", "v1.0"),
        ("org/name@refs/pr/3", "org/name", "refs/pr/3"),
        ("hf://org/name", "org/name", None),
        ("hf://org/name@main", "org/name", "main"),
        ("RedHatAI/Qwen3-8B-speculator.eagle3", "RedHatAI/Qwen3-8B-speculator.eagle3", None),
    ],
)
def test_what_is_an_id(text: str, repo: str, revision: str | None) -> None:
    assert parse_hub_id(text) == HubId(repo=repo, revision=revision)


@pytest.mark.parametrize(
    "text",
    ["name", "./org/name", "/org/name", "~/name", "a/b/c", "org/na me", "org/../name", "org/name@"],
)
def test_what_is_none(text: str) -> None:
    assert parse_hub_id(text) is None


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Hub's cache in a temporary folder, and a function that puts a drafter into it."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)

    def put(*, weights: bool) -> Path:
        repository = tmp_path / "hub" / "models--org--drafter"
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / "main").write_text(COMMIT)
        tensors = {"fc.weight": TensorBytes(dtype="U8", shape=(1,), data=b"x")}
        snapshot = write_checkpoint(repository / "snapshots" / COMMIT, {"hidden_size": 4}, tensors)
        if not weights:
            (snapshot / "model.safetensors").unlink()
        return snapshot

    return put


def test_a_cached_drafter_opens_offline(cache: Callable[..., Path]) -> None:
    snapshot = cache(weights=True)

    for location in ("org/drafter", "hf://org/drafter@main"):
        checkpoint = open_checkpoint(location)
        assert checkpoint.location == location
        assert checkpoint.revision == COMMIT
        assert checkpoint.directory == snapshot
        assert checkpoint.read_bytes("fc.weight") == b"x"
    assert open_target("org/drafter").hidden_size == 4


@pytest.mark.parametrize("cached", ["nothing", "config.json"])
def test_offline_the_missing_file_is_named(cache: Callable[..., Path], cached: str) -> None:
    if cached == "config.json":
        cache(weights=False)
    missing = "config.json" if cached == "nothing" else "model.safetensors"

    with pytest.raises(CheckpointError, match=f"{missing} of the Hub repository org/drafter") as e:
        open_checkpoint("org/drafter")

    assert "while HF_HUB_OFFLINE is set" in e.value.message
    assert e.value.hint == "unset HF_HUB_OFFLINE, or run: hf download org/drafter"


@pytest.mark.parametrize("offline", [True, False])
def test_a_name_that_the_hub_does_not_take(
    cache: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, offline: bool
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)

    with pytest.raises(CheckpointError, match="'org/a--b' is no Hub id"):
        open_checkpoint("org/a--b")


def test_offline_the_way_out_keeps_the_revision(cache: Callable[..., Path]) -> None:
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint("org/drafter@v1.0")

    assert str(caught.value.hint).endswith("hf download org/drafter --revision v1.0")


def test_offline_a_missing_shard_is_named(cache: Callable[..., Path]) -> None:
    snapshot = cache(weights=True)
    index = {"weight_map": {"fc.weight": "model.safetensors", "d2t": "model-2.safetensors"}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))

    with pytest.raises(CheckpointError, match=r"lacks model-2\.safetensors, which"):
        open_checkpoint("org/drafter")


def test_offline_targets_say_so_too(cache: Callable[..., Path]) -> None:
    with pytest.raises(TargetError, match=r"config\.json of the Hub repository org/target is not"):
        open_target("org/target")


def test_a_slip_in_a_local_path_is_not_asked_of_the_hub(
    cache: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "runs").mkdir()

    with pytest.raises(CheckpointError, match="there is no file or directory 'runs/draft'") as e:
        open_checkpoint("runs/draft")

    assert e.value.hint == "check what is in runs, or write hf://runs/draft for the Hub's"
