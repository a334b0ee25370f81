"""eyas diagnose as it is typed: a damaged drafter and a sound one, and what it refuses."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import torch

from eyas.checkpoint import open_checkpoint
from eyas.cli import main
from eyas.data.prompts import OWN_PROMPTS
from eyas.demo.views import flatten
from eyas.diagnose.causes import CauseId
from eyas.diagnose.wording import command

Captured = pytest.CaptureFixture[str]
OLD, NEW = "sglang@0.5.10.post1", "sglang@0.5.23"


@pytest.fixture(scope="module")
def flat(trained_here: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drafter with a flat config, its layer named as SGLang 0.5.10 does not read it."""
    folder = tmp_path_factory.mktemp("flat") / "draft"
    flatten(open_checkpoint(trained_here), folder)
    return folder


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three of eyas's own."""
    lines = OWN_PROMPTS.read_text(encoding="utf-8").splitlines()
    file = tmp_path_factory.mktemp("prompts") / "three.jsonl"
    file.write_text("\n".join(lines[i] for i in (2, 9, 17)) + "\n", encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def run(capsys: Captured, *arguments: str | Path) -> tuple[int, str, str]:
    code = main(["diagnose", *(str(argument) for argument in arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_lost_layer_is_blamed_with_its_price_and_a_page(
    flat: Path, smollm2: Path, prompts: Path, tmp_path: Path, capsys: Captured
) -> None:
    asked = (flat, "--target", smollm2, "--engine", OLD, "--prompts", prompts)
    file = tmp_path / "why.html"
    code, out, err = run(
        capsys, *asked, "--observed", "1.05", "--no-values", "--report", file, "--format", "json"
    )
    assert code == 1, err
    document = json.loads(out)
    first = document["causes"][0]
    assert first["id"] == "layer-lost"
    assert first["alone"]["value"] > 0.4
    assert first["command"].startswith("eyas convert")
    assert document["trained"]["tau"]["value"] > 1.4
    assert all(served["tau"]["value"] < 1.25 for served in document["served"])
    assert "  replaying as served\n" in err
    assert err.endswith(f"next: open {file}\n")
    page = file.read_text(encoding="utf-8")
    assert document["verdict"].split(";")[0] in page
    assert "uninitialised memory" in page  # the landing
    assert 'class="lost"' in page  # drafts that were accepted as trained, in the target's answers


def test_a_sound_drafter_is_not(flat: Path, smollm2: Path, prompts: Path, capsys: Captured) -> None:
    asked = (flat, "--target", smollm2, "--engine", NEW, "--prompts", prompts)
    code, out, err = run(capsys, *asked, "--quiet")
    assert code == 0, out
    assert out.startswith("As trained this drafter gives tau ")
    assert "Nothing is blamed: 3 texts cannot tell readings apart" in out.partition("\n")[0]
    assert err == f"next: eyas eval {flat} --target {smollm2} --prompts FILE\n"


def test_commands_repeat_what_was_typed(
    flat: Path,
    smollm2: Path,
    prompts: Path,
    tmp_path: Path,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "my draft").symlink_to(flat)
    (tmp_path / "the target").symlink_to(smollm2)
    monkeypatch.chdir(tmp_path)
    asked = ("./my draft", "--engine", NEW, "--prompts", prompts, "--no-values", "--quiet")
    for typed, quoted in (("./the target", "'./the target'"), ("smollm2", "smollm2")):
        code, out, err = run(capsys, *asked, "--target", typed)
        assert code == 0, out
        assert err == f"next: eyas eval './my draft' --target {quoted} --prompts FILE\n"
    asked = ("./my draft", "--engine", OLD, "--prompts", prompts, "--no-values", "--format", "json")
    code, out, _ = run(capsys, *asked, "--target", "./the target", "--report", "why.html")
    document = json.loads(out)
    assert (code, document["target"]) == (1, "./the target")
    again = shlex.split(document["causes"][0]["command"])
    assert again[:3] == ["eyas", "convert", "./my draft"]
    assert again[4:] == ["--to", OLD, "--target", "./the target"]
    assert main(again[1:]) == 0
    assert "./the target" in Path("why.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("cause", CauseId)
def test_every_command_is_quoted(cause: CauseId) -> None:
    said = command(cause, None, draft="./a b", target="./c d", config="config.json")
    assert said
    assert "./a b" not in said.replace("'./a b'", "")
    assert "./c d" not in said.replace("'./c d'", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--engine", "sglnag@0.5.23"), "sglang"),
        (("--launch", "speculative_algorithm=EAGLE"), "--launch is for an engine"),
        (("--engine", NEW, "--launch", "EAGLE"), "key=value"),
        (("--observed", "0.4"), "tau of 0.4 cannot be"),
        (("--observed", "5"), "1 to 4"),
        (("--observed", "nan"), "cannot be"),
        (("--observed", "1.5", "--observed-rates", "0.5"), "give one of them"),
        (("--observed-rates", "47,22"), "write 0.47 for 47 %"),
        (("--observed-rates", "0.2,0.4"), "rise"),
        (("--observed-rates", "0.4,0.3,0.2,0.1"), "--steps 4"),
        (("--observed-rates", "half"), "no list of numbers"),
        (("--speed", "25"), "WITH,WITHOUT"),
        (("--speed", "25,0"), "above 0"),
        (("--speed", "25,inf"), "no list of numbers"),
        (("--report", "why.pdf"), "end it in .html"),
        (("--report", "/does/not/exist/why.html"), "mkdir"),
        (("--prompts", "/does/not/exist"), "/does/not/exist"),
        (("--steps", "0"), "--steps"),
    ],
)
def test_bad_input_is_one_sentence_and_json(
    flat: Path, smollm2: Path, capsys: Captured, arguments: tuple[str, ...], said: str
) -> None:
    asked = (flat, "--target", smollm2, *arguments, "--quiet")
    code, out, err = run(capsys, *asked)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    code, out, _ = run(capsys, *asked, "--format", "json")
    assert code == 2
    assert json.loads(out)["error"]["message"] in err


def test_an_engine_that_nobody_knows_is_no_pass(
    flat: Path, smollm2: Path, prompts: Path, capsys: Captured
) -> None:
    asked = (flat, "--target", smollm2, "--engine", "sglang@0.4.0", "--prompts", prompts)
    code, out, err = run(capsys, *asked, "--quiet", "--no-values")
    assert code == 2
    assert "sglang@0.4.0 was not judged" in out
    assert err.endswith("error: sglang@0.4.0 was not judged, the files alone were\n")


def test_a_drafter_that_is_not_there(smollm2: Path, capsys: Captured) -> None:
    code, out, err = run(capsys, "/does/not/exist", "--target", smollm2)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "/does/not/exist" in err


def test_a_target_has_to_be_named(flat: Path, capsys: Captured) -> None:
    code, _, err = run(capsys, flat)
    assert code == 2
    assert "--target" in err


def test_numbers_that_are_none_are_null() -> None:
    from eyas.cli.diagnose import _finite

    odd = {"a": float("nan"), "b": (1.5, float("-inf")), "c": [{"d": 2}], "e": "nan", "f": True}
    assert _finite(odd) == {"a": None, "b": [1.5, None], "c": [{"d": 2}], "e": "nan", "f": True}
