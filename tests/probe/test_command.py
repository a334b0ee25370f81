"""`eyas probe` and `eyas engine` from the command line, with a stand-in for the engine's Python."""

import json
import stat
import sys
from pathlib import Path

import pytest

from eyas.checkpoint import write_sparse
from eyas.cli import main
from eyas.probe.fixture import read_fixture

FIXTURES = Path(__file__).parent / "fixtures" / "vllm-0.32.0"


@pytest.fixture
def recorded() -> tuple[Path, dict[str, object]]:
    """A fixture that the engine serves, and its record."""
    for file in sorted(FIXTURES.glob("*.json")):
        record = json.loads(file.read_text())["observed"]
        if record["status"] == "ok":
            return file, record
    raise AssertionError("no fixture is served")


def stand_in(folder: Path, record: dict[str, object]) -> Path:
    """A program that answers every job with `record`, whatever script it is given."""
    program = folder / "python"
    text = json.dumps(record)
    program.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        "jobs = json.load(open(sys.argv[-2]))\n"
        f"open(sys.argv[-1], 'w').write(({text!r} + chr(10)) * len(jobs))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def test_an_engine_that_agrees(
    recorded: tuple[Path, dict[str, object]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, record = recorded
    (tmp_path / "job").mkdir()
    fixture = read_fixture(file, tmp_path / "job")
    assert fixture.target is not None
    line = ["probe", f"vllm@0.32.0:{fixture.runner}", str(fixture.checkpoint.directory)]
    line += ["--target", str(fixture.target.directory)]
    line += ["--python", str(stand_in(tmp_path, record))]
    for key, value in fixture.launch.settings:
        line += ["--launch", f"{key}={value}"]
    assert main([*line, "--record", str(tmp_path / "again.json")]) == 0
    said = capsys.readouterr()
    assert "really loads" in said.out
    assert "✓ the contract of vllm 0.32.0 says the same" in said.out
    assert json.loads((tmp_path / "again.json").read_text())["observed"] == record
    assert main([*line, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["disagreements"], document["observed"]) == ([], record)


def test_an_engine_that_disagrees_is_exit_code_1(
    recorded: tuple[Path, dict[str, object]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, record = recorded
    (tmp_path / "job").mkdir()
    fixture = read_fixture(file, tmp_path / "job")
    assert fixture.target is not None
    newer = record | {"version": "99.0", "status": "raises", "stage": "load"}
    newer |= {"error": {"type": "ValueError", "message": "not any more"}}
    line = ["probe", f"vllm:{fixture.runner}", str(fixture.checkpoint.directory)]
    line += ["--target", str(fixture.target.directory)]
    line += ["--python", str(stand_in(tmp_path, newer))]
    for key, value in fixture.launch.settings:
        line += ["--launch", f"{key}={value}"]
    assert main(line) == 1
    said = capsys.readouterr().out
    assert "vllm@99.0" in said
    assert "raises at load: ValueError: not any more" in said
    assert "the contract of vllm 0.33.0 disagrees in 1 point" in said


def test_what_cannot_be_asked_is_exit_code_2_and_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path / "cache"))
    draft = str(write_sparse(tmp_path / "draft", {"model_type": "llama"}, {"a": ("F32", (1,))}))

    def said(*line: str) -> str:
        assert main(list(line)) == 2
        return capsys.readouterr().err

    assert "run: eyas engine install vllm" in said("probe", "vllm", draft)
    assert "--version 0.33.0" in said("probe", "vllm@0.33.0", draft)
    assert "no Python at" in said("probe", "vllm", draft, "--python", str(tmp_path / "none"))
    assert "add --target" in said("probe", "vllm", draft, "--python", sys.executable)
    assert "cannot install an engine 'vlm'" in said("probe", "vlm", draft)
    assert "no engine is named" in said("engine", "install")
    target = tmp_path / "target"
    target.mkdir()
    (target / "config.json").write_text('{"model_type": "llama", "hidden_size": 8}')
    asked = said("probe", "vllm", draft, "--target", str(target), "--python", sys.executable)
    assert "cannot import vllm" in asked
    assert "run: eyas engine install vllm" in asked


def test_the_list_says_what_to_type_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path / "cache"))
    assert main(["engine", "list"]) == 0
    said = capsys.readouterr()
    assert said.out == "no engine is installed\n"
    assert "eyas engine install vllm" in said.err
