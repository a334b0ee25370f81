"""The program around the commands: help, errors, streams, imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import eyas
from eyas.cli import main, program
from eyas.cli.failure import format_of

Make = Callable[..., Path]
Captured = pytest.CaptureFixture[str]
RUN = "import sys; from eyas.cli import main; sys.exit(main())"


def eyas_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )


def test_nothing_heavy_is_imported_for_the_command_line() -> None:
    heavy = "torch", "transformers", "huggingface_hub", "numpy", "safetensors", "pydantic"
    code = f"import sys, eyas.cli; print([m for m in {heavy!r} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "[]"


def test_a_check_of_a_local_directory_needs_no_torch(make_drafter: Make) -> None:
    draft = make_drafter()
    code = (
        "import sys; from eyas.cli import main;"
        f"main(['check', {str(draft)!r}, '--engine', 'sglang@0.5.23,vllm@0.33.0']);"
        "sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'huggingface_hub')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)


def test_a_question_pays_for_what_it_asks_about(make_drafter: Make) -> None:
    others = "eyas.cli.convert", "eyas.engines.vllm.reader", "eyas.checks.values"
    code = (
        "import sys; from eyas.cli import main;"
        f"main(['check', {str(make_drafter())!r}, '--engine', 'sglang@0.5.23']);"
        "assert 'eyas.engines.sglang.reader' in sys.modules;"
        f"sys.exit(any(m in sys.modules for m in {others!r}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)


def test_help_has_two_examples_first() -> None:
    text = eyas_process("--help", COLUMNS="100", NO_COLOR="1").stdout
    assert text.index("eyas check ./draft") < text.index("eyas convert ./draft")
    assert text.index("eyas convert ./draft") < text.index("Options")


@pytest.mark.parametrize("name", [name for _, name in program.COMMANDS])
def test_every_command_has_help_with_an_example(name: str, capsys: Captured) -> None:
    paragraphs = (program.command(name).__doc__ or "").split("\n\n")
    for example in paragraphs[1:3]:  # right after the first line
        assert f"eyas {name}" in example
    assert main([name, "--help"]) == 0
    assert f"eyas {name} " in capsys.readouterr().out


def test_version(capsys: Captured) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"eyas {eyas.__version__}\n"


def test_without_a_command_the_help_is_shown(capsys: Captured) -> None:
    assert main([]) == 2
    assert "Usage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chek", "x"], "Did you mean 'check'?"),
        (["check", "x", "--engin", "y"], "--engine"),
        (["check", "--engine", "sglang@0.5.23"], "DRAFT"),
        (["explain", "L22"], "L202"),
        (["check", ".", "--engine", "sglnag@0.5.23"], "sglang"),
        (["check", "/does/not/exist", "--engine", "sglang@0.5.23"], "/does/not/exist"),
        (["convert", "/does/not/exist", "/tmp", "--to", "sglnag"], "did you mean sglang"),
    ],
)
def test_bad_input_is_one_sentence_on_stderr(
    capsys: Captured, arguments: list[str], said: str
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "/does/not/exist", "--engine", "sglang@0.5.23", "--format", "json"],
        ["inspect", "/does/not/exist", "--format=json"],
        ["check", "--format", "json"],
        ["check", "x", "--unknown", "--format", "json"],
    ],
)
def test_json_parses_after_an_error_too(capsys: Captured, arguments: list[str]) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["schema_version"] == 1
    assert set(document["error"]) == {"kind", "message", "hint"}
    assert document["error"]["message"] in err


def test_code_scanners_are_told_of_an_error_too(capsys: Captured) -> None:
    assert main(["check", "/does/not/exist", "--format", "sarif"]) == 2
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    (told,) = invocation["toolExecutionNotifications"]
    assert "/does/not/exist" in told["message"]["text"]
    assert "results" not in run
    assert main(["check", "/does/not/exist", "--format", "github"]) == 2
    out = capsys.readouterr().out
    assert out.startswith("::error title=eyas could not judge::")
    assert out.count("\n") == 1


def test_a_crash_is_one_line_and_json_still_parses(
    capsys: Captured, make_drafter: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("a bug\nwith two lines")

    monkeypatch.setattr("eyas.engines.read", crash)
    draft = str(make_drafter())
    assert main(["check", draft, "--engine", "sglang@0.5.23", "--format", "json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["kind"] == "InternalError"
    assert err.count("\n") == 1
    assert "EYAS_TRACEBACK=1" in err
    monkeypatch.setenv("EYAS_TRACEBACK", "1")
    assert main(["check", draft, "--engine", "sglang@0.5.23"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_an_interruption_is_130(
    capsys: Captured, make_drafter: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("eyas.engines.read", interrupt)
    assert main(["check", str(make_drafter()), "--engine", "sglang@0.5.23"]) == 130
    assert capsys.readouterr().out == ""


def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN, "explain"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(timeout=60) == 0
    assert "Traceback" not in said
    assert "error" not in said


@pytest.mark.parametrize("shell", ["| true", ">&-", "> /dev/full", ">&- 2>&-", "2> /dev/full"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [("check nope --engine sglang@0.5.23 --format json", 2), ("explain", 0), ("--help", 0)],
)
def test_a_stream_that_cannot_be_written_ends_without_a_traceback(
    shell: str, arguments: str, code: int
) -> None:
    program = f"{sys.executable} -c '{RUN}' {arguments}"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {program} {shell}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lost = ">" in shell.removeprefix("2>")
    assert done.returncode == (2 if lost else code), done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.stderr.count("error: ") <= 1


def test_convert_says_what_it_did_on_an_ascii_terminal(make_drafter: Make, tmp_path: Path) -> None:
    arguments = "convert", str(make_drafter()), str(tmp_path / "out"), "--to", "sglang@0.5.10.post1"
    done = eyas_process(*arguments, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr[:6]) == (0, "next: ")


def test_ascii_terminals_get_ascii(make_drafter: Make) -> None:
    done = eyas_process(
        "check",
        str(make_drafter()),
        "--engine",
        "sglang@0.5.23,vllm@0.33.0",
        PYTHONIOENCODING="ascii",
    )
    assert done.returncode == 0, done.stderr
    assert "sglang 0.5.23: 14 of 14 tensors land - vllm" in done.stdout


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        ([], None),
        (["check", "--format", "json"], "json"),
        (["check", "--format=sarif"], "sarif"),
        (["check", "json", "--format"], ""),
        (["check", "--format", "human"], "human"),
        (["check", "--format", "human", "--format", "json"], "json"),
    ],
)
def test_which_format_is_wanted(argv: list[str], wanted: str | None) -> None:
    assert format_of(argv) == wanted
