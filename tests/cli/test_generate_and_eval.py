"""eyas generate and eyas eval on the embedded target, with the drafter that was trained here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eyas.cli import main
from eyas.data.prompts import read_prompts, write_prompts
from eyas.demo.assets import PROMPTS

Captured = pytest.CaptureFixture[str]
QUESTION = "Name the three longest rivers."


def run(capsys: Captured, *arguments: str | Path) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_text_is_the_targets_own_and_stands_alone_on_stdout(
    smollm2: Path, trained_here: Path, capsys: Captured
) -> None:
    common = ("--target", smollm2, "--max-new", 16)
    code, alone, err = run(capsys, "generate", QUESTION, *common)
    assert (code, err) == (0, "")
    assert len(alone) > 40
    drafted = ("generate", trained_here, QUESTION, *common, "--show-accepted")
    code, marked, err = run(capsys, *drafted, "--color", "never", "--stats")
    assert code == 0
    assert "⟦" in marked
    assert marked.replace("⟦", "").replace("⟧", "") == alone
    assert "tau " in err
    assert "sglang@0.5.10.post1 would say" in err
    assert "there was no baseline" in err
    assert "next:" not in err
    code, painted, err = run(capsys, *drafted, "--color", "always", "--baseline")
    assert painted.replace("\x1b[32m", "").replace("\x1b[0m", "") == alone
    assert "\x1b[32m" in painted
    # the baseline's numbers are the statistics, and nothing suggests to ask for them
    assert "a round costs that many plain steps" in err
    assert "next:" not in err


@pytest.mark.parametrize("drafted", [False, True])
def test_bfloat16_is_said_to_be_inexact_where_something_is_drafted(
    smollm2: Path, trained_here: Path, capsys: Captured, drafted: bool
) -> None:
    words = (trained_here, QUESTION) if drafted else (QUESTION,)
    code, _, err = run(
        capsys, "generate", *words, "--target", smollm2, "--max-new", 2, "--dtype", "bfloat16"
    )
    assert code == 0
    assert err.startswith("note: in bfloat16 ") == drafted
    assert ("float32 is exact" in err) == drafted


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a", "b", "c"), "put the prompt in quotes"),
        (("",), "the prompt is empty"),
        (("hello", "--show-accepted"), "nothing is drafted"),
        (("hello", "--device", "warp"), "no device 'warp'"),
        (("hello", "--device", "meta"), "no device 'meta'"),
        (("hello", "--device", "cuda:99"), "no device 'cuda:99'"),
        (("hello", "--max-new", "9999"), "the target has 8192 positions"),
        (("/does/not/exist", "hello"), "/does/not/exist"),
    ],
)
def test_generate_refuses_in_one_sentence(
    smollm2: Path, capsys: Captured, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = run(capsys, "generate", *arguments, "--target", smollm2)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_eval_with_the_drafter_as_served(
    smollm2: Path, trained_here: Path, tmp_path: Path, capsys: Captured
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    write_prompts(prompts, read_prompts(PROMPTS)[:2] + read_prompts(PROMPTS)[16:18])
    command = (
        "eval",
        trained_here,
        "--target",
        smollm2,
        "--prompts",
        prompts,
        "--limit-per-category",
        1,
        "--max-new",
        12,
        "--out",
        tmp_path / "outcomes.jsonl",
        "--quiet",
    )
    code, out, err = run(
        capsys,
        *command,
        "--as-served",
        "sglang@0.5.10.post1,vllm@0.33.0",
        "--baseline",
        "--format",
        "json",
    )
    assert code == 0, err
    document = json.loads(out)
    trained, sglang, vllm = document["arms"]
    (run_as_trained,) = trained["runs"]
    assert run_as_trained["accepted"] > 0
    assert run_as_trained["same_answers"] == 2
    # as it was saved no SGLang reads its config, and vLLM computes what was trained
    assert sglang["refusal"].startswith("does not start")
    assert vllm["runs"][0]["accepted"] == run_as_trained["accepted"]
    picture = tmp_path / "a.png"
    code, out, err = run(capsys, *command, "--plot", picture)
    assert code == 0, err
    mean = next(line for line in out.splitlines() if "macro mean" in line)
    assert mean.split()[2:] == ["2", f"{run_as_trained['macro_tau']['value']:.2f}"]
    assert "draft 3  as trained" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--prompts", "/does/not/exist"), "/does/not/exist"),
        (("--prompts", str(PROMPTS), "--launch", "a=b"), "--as-served"),
        (("--prompts", str(PROMPTS), "--as-served", "sglang"), "version"),
        (("--prompts", str(PROMPTS), "--plot", "a.jpeg"), "a.jpeg"),
    ],
)
def test_eval_refuses_before_anything_is_loaded(
    smollm2: Path, capsys: Captured, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = run(capsys, "eval", "draft", "--target", smollm2, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
