"""A target by its Hub id: what is asked of the Hub, and what is said when it is not there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eyas.errors import FetchError, TargetError
from eyas.model.load import target_directory

COMMIT = "c" * 40


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stands in for the Hub, which has org/model alone (a mock): the patterns that it is asked."""
    import huggingface_hub
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import RepositoryNotFoundError

    snapshot = tmp_path / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    patterns: list[str] = []

    def answer(_: Any, repo: str, **__: Any) -> SimpleNamespace:
        if repo != "org/model":
            raise RepositoryNotFoundError.__new__(RepositoryNotFoundError, "no")
        held = [SimpleNamespace(rfilename=name) for name in ("config.json", "model.safetensors")]
        return SimpleNamespace(sha=COMMIT, siblings=held)

    def download(*_: Any, allow_patterns: list[str], **__: Any) -> str:
        patterns.extend(allow_patterns)
        return str(snapshot)

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(HfApi, "model_info", answer)
    config = str(snapshot / "config.json")
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda *_, **__: None)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *_, **__: config)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.chdir(tmp_path)
    return patterns


def test_a_target_is_fetched_with_its_tokenizer(asked: list[str]) -> None:
    assert target_directory("org/model@main").name == COMMIT
    assert {"*.safetensors", "*.json", "*.jinja", "*.model"} <= set(asked)
    assert not {"*", "*.py", "*.bin"} & set(asked)


def test_a_repository_that_is_not_there_is_named(asked: list[str]) -> None:
    with pytest.raises(TargetError, match="no Hub repository of that name") as caught:
        target_directory("org/other")
    assert caught.value.hint == "check the name, or set HF_TOKEN for a private one"
    assert asked == []


def test_a_slip_in_a_local_path_is_not_asked_of_the_hub(asked: list[str], tmp_path: Path) -> None:
    (tmp_path / "org").mkdir()
    with pytest.raises(TargetError, match="no file or directory 'org/model'"):
        target_directory("org/model")
    assert asked == []


def test_an_unreachable_hub_is_a_failed_fetch(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    def unreachable(*_: Any, **__: Any) -> None:
        raise OSError("no route")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", unreachable)
    with pytest.raises(FetchError, match=r"config\.json of org/model.*no route"):
        target_directory("org/model")
