"""eyas as a library: what it offers, and that it says what the command says."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eyas
from eyas.cli import main

Make = Callable[..., Path]
OLD, NEW = "sglang@0.5.10.post1", "sglang@0.5.23"


def test_the_public_names() -> None:
    assert sorted(eyas.__all__) == [
        "CheckedFile",
        "Coverage",
        "EngineOutcome",
        "EyasError",
        "Finding",
        "Format",
        "Outcome",
        "Report",
        "Severity",
        "Skip",
        "Subject",
        "Tool",
        "__version__",
        "check",
        "explain",
        "render",
    ]
    assert set(eyas.__all__) <= set(dir(eyas))


@pytest.mark.parametrize("name", sorted(set(eyas.__all__) - {"__version__"}))
def test_every_public_name_is_documented_and_typed(name: str) -> None:
    offered = getattr(eyas, name)
    assert inspect.getdoc(offered)
    assert offered.__name__ == name
    if inspect.isfunction(offered):
        parameters = inspect.signature(offered).parameters.values()
        assert not [p.name for p in parameters if p.annotation is p.empty]
        assert offered.__annotations__["return"] in ("Report", "str")


def test_another_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'eyas' has no attribute 'chekc'"):
        eyas.chekc  # noqa: B018
    assert not hasattr(eyas, "checks_of_another_kind")


def test_types_are_shipped() -> None:
    assert (Path(eyas.__file__).parent / "py.typed").is_file()


def test_importing_imports_nothing_else_and_checking_no_torch(make_drafter: Make) -> None:
    code = (
        "import sys; before = set(sys.modules); import eyas;"
        "new = {m.partition('.')[0] for m in set(sys.modules) - before};"
        "assert not new - {'eyas'} - sys.stdlib_module_names, new;"
        "assert [m for m in sys.modules if m.startswith('eyas.')] == ['eyas.__about__'];"
        f"report = eyas.check({str(make_drafter())!r}, engines={NEW!r}, values=True);"
        "assert callable(eyas.check);"
        "sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'typer', 'rich')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_check_says_what_the_command_says(
    make_drafter: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = make_drafter(layer="layers.0.")
    report = eyas.check(draft, engines=f"{OLD},{NEW}")
    assert [f.code for f in report.findings] == ["L202"]
    code = main(["check", str(draft), "--engine", f"{OLD},{NEW}", "--format", "json"])
    assert code == report.exit_code() == 1
    written = eyas.render(report, eyas.Format.JSON)
    assert json.loads(written) == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ({}, set()),
        ({"launch": {"speculative_algorithm": "EAGLE"}}, {"F301", "V401", "V402"}),
        ({"launch": ["speculative_algorithm=EAGLE"]}, {"F301", "V401", "V402"}),
        ({"launch": "speculative_algorithm=EAGLE", "select": "F"}, {"F301"}),
        ({"launch": "speculative_algorithm=EAGLE", "ignore": ["F301", "V402"]}, {"V401"}),
        ({"values": True, "select": "W903"}, {"W903"}),  # each tensor here is a constant
    ],
)
def test_options_are_those_of_the_command(
    make_drafter: Make, options: dict[str, Any], codes: set[str]
) -> None:
    report = eyas.check(str(make_drafter()), engines=[NEW], **options)
    assert {f.code for f in report.findings if f.severity is not eyas.Severity.INFO} == codes


def test_without_engines_the_newest_of_each_judges(make_drafter: Make) -> None:
    names = [outcome.engine for outcome in eyas.check(make_drafter()).engines]
    assert names == sorted(set(names))
    assert "sglang" in names


@pytest.mark.parametrize(
    "options",
    [
        {"engines": "sglang"},
        {"engines": NEW, "select": ["L22"]},
        {"engines": NEW, "launch": {"speculative_algoritm": "EAGLE"}},
        {"engines": NEW, "target": "/does/not/exist"},
    ],
)
def test_what_cannot_be_used_is_an_eyas_error(make_drafter: Make, options: dict[str, Any]) -> None:
    with pytest.raises(eyas.EyasError) as caught:
        eyas.check(make_drafter(), **options)
    assert caught.value.message
    assert caught.value.hint
