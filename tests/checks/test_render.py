"""The formats of a report, and the terminal's limits."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from eyas.checks import (
    Coverage,
    EngineOutcome,
    Finding,
    Outcome,
    Report,
    Severity,
    Skip,
    Subject,
    Tool,
)
from eyas.checks.render import Format, Style, render, style_for
from eyas.checks.render.json import schema

LOST = Finding(
    code="L202",
    name="layer-dropped",
    severity=Severity.ERROR,
    engine="sglang",
    version="0.5.11",
    runner=None,
    place="model.safetensors :: layers.0.*",
    message="sglang 0.5.11 reads none of the 10 tensors of the decoder layer",
    expected="tensors for model.midlayer.*",
    found="layers.0.*, which fills no parameter",
    effect="acceptance collapses",
    help="eyas convert ./draft ./draft-sglang --to sglang@0.5.11",
    source="sglang 0.5.11, llama_eagle3.py:1",
)
REPORT = Report(
    schema_version=1,
    tool=Tool(name="eyas", version="0"),
    subject=Subject(path="./draft", revision=None, dialect="specforge", files=()),
    target=None,
    engines=(
        EngineOutcome(
            engine="sglang",
            version="0.5.11",
            runner=None,
            outcome=Outcome.FAIL,
            coverage=Coverage(landed=4, total=14),
            reason=None,
        ),
        EngineOutcome(
            engine="vllm",
            version="0.33.0",
            runner="v2",
            outcome=Outcome.PASS,
            coverage=Coverage(landed=14, total=14),
            reason=None,
        ),
        EngineOutcome(
            engine="vllm",
            version="9.0",
            runner=None,
            outcome=Outcome.SKIP,
            coverage=None,
            reason="no contract",
        ),
    ),
    findings=(LOST,),
    skipped=(
        *(Skip(check=f"T70{i}", engine=None, reason="no --target") for i in (1, 2, 3)),
        Skip(check="B601", engine="sglang@0.5.11", reason="no depth"),
    ),
    left_out=("L206 tensor-surplus",),
)


def test_human_has_the_verdict_first_and_the_count_last() -> None:
    assert render(REPORT, Format.HUMAN) == (
        "fail: sglang 0.5.11 · pass: vllm 0.33.0:v2 · not checked: vllm 9.0\n"
        "\n"
        "error[L202] layer-dropped: sglang 0.5.11 reads none of the 10 tensors of the decoder"
        " layer\n"
        "  --> model.safetensors :: layers.0.*\n"
        "   = evidence: expected tensors for model.midlayer.*;"
        " found layers.0.*, which fills no parameter\n"
        "   = effect: acceptance collapses\n"
        "   = help: eyas convert ./draft ./draft-sglang --to sglang@0.5.11\n"
        "   = source: sglang 0.5.11, llama_eagle3.py:1\n"
        "\n"
        "sglang 0.5.11: 4 of 14 tensors land · vllm 0.33.0:v2: 14 of 14\n"
        "not checked: vllm 9.0: no contract\n"
        "not run (no --target): T701, T702, T703\n"
        "not run for sglang@0.5.11 (no depth): B601\n"
        "left out by --select or --ignore: L206 tensor-surplus\n"
        "1 error, 0 warnings; 3 checks not run (no --target);"
        " B601 not run for 1 engine; 1 check left out; 1 engine not checked\n"
    )


def test_the_commit_of_a_hub_drafter_is_said() -> None:
    subject = replace(REPORT.subject, path="org/name@v1", revision="c0ffee")
    lines = render(replace(REPORT, subject=subject), Format.HUMAN).splitlines()
    assert lines[-2] == "org/name@v1 at commit c0ffee"


def test_a_target_from_the_hub_is_named_with_its_commit() -> None:
    report = replace(REPORT, target="org/target", target_revision="decade")

    assert render(report, Format.HUMAN).splitlines()[-2] == "org/target at commit decade"


def test_one_finding_about_two_versions_is_shown_once() -> None:
    other = replace(
        LOST,
        version="0.5.8",
        message=LOST.message.replace("0.5.11", "0.5.8"),
        help=LOST.help.replace("0.5.11", "0.5.8"),
    )
    text = render(replace(REPORT, findings=(LOST, other)), Format.HUMAN)
    assert text.count("error[L202]") == 1
    assert "= the same with: sglang 0.5.8\n" in text
    assert "2 errors" in text


def test_more_than_twenty_findings_are_counted() -> None:
    many = tuple(replace(LOST, place=f"model.safetensors :: t{i}") for i in range(61))
    text = render(replace(REPORT, findings=many), Format.HUMAN)
    assert text.count("error[L202]") == 20
    assert "and 41 more like this: L202 layer-dropped" in text


def test_concise_has_one_line_for_each_finding() -> None:
    lines = render(REPORT, Format.CONCISE).splitlines()
    assert lines[0] == f"{LOST.place}: error[L202] layer-dropped: {LOST.message}"
    assert lines[-1].startswith("1 error, 0 warnings")


def test_json_keeps_its_keys() -> None:
    document = json.loads(render(REPORT, Format.JSON))
    assert list(document) == [
        "schema_version",
        "tool",
        "subject",
        "target",
        "target_revision",
        "engines",
        "findings",
        "skipped",
        "left_out",
    ]
    assert list(document["findings"][0]) == [
        "code",
        "name",
        "severity",
        "engine",
        "version",
        "runner",
        "place",
        "message",
        "expected",
        "found",
        "effect",
        "help",
        "source",
    ]
    assert document["engines"][0]["coverage"] == {"landed": 4, "total": 14}
    assert list(schema()["$defs"]["Report"]["properties"]) == list(document)


def test_the_published_schema_is_current() -> None:
    published = Path(__file__).resolve().parents[2] / "docs" / "report.schema.json"
    assert json.loads(published.read_text()) == schema(), "run: python scripts/report_schema.py"


def test_ascii_where_the_terminal_can_do_no_more() -> None:
    render(REPORT, Format.HUMAN, Style(color=False, unicode=False)).encode("ascii")


def test_colour_is_only_where_it_is_wanted() -> None:
    assert "\x1b[" in render(REPORT, Format.HUMAN, Style(color=True, unicode=True))
    assert "\x1b[" not in render(REPORT, Format.HUMAN)


@pytest.mark.parametrize("color", [True, False])
def test_what_a_file_says_steers_no_terminal(color: bool) -> None:
    style = Style(color=color, unicode=True)

    shown = style.fit(style.paint("a\x1b[2Jb\u202ec\x00\nd", "error"))

    assert shown == style.paint("a\\x1b[2Jb\\u202ec\\x00\nd", "error")


@pytest.mark.parametrize(
    ("environment", "choice", "colored"),
    [
        ({}, "auto", False),
        ({"FORCE_COLOR": "1"}, "auto", True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, "auto", False),
        ({"NO_COLOR": "1"}, "always", True),
        ({"FORCE_COLOR": "1"}, "never", False),
    ],
)
def test_who_decides_on_colour(environment: dict[str, str], choice: str, colored: bool) -> None:
    assert style_for(io.StringIO(), environment, choice).color is colored


def test_the_encoding_of_the_stream_decides_on_characters() -> None:
    ascii_stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    utf8_stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    assert not style_for(ascii_stream, {}).unicode
    assert style_for(utf8_stream, {}).unicode


@pytest.mark.parametrize("width", [60, 80, 120])
def test_on_a_terminal_lines_fit_and_what_is_copied_stays_whole(width: int) -> None:
    long = replace(LOST, effect="its matrices hold uninitialised memory " * 5, place="a :: " * 30)
    engines = tuple(replace(REPORT.engines[0], version=f"0.5.{i}") for i in range(12))
    report = replace(REPORT, findings=(long,), engines=engines)
    text = render(report, Format.HUMAN, Style(color=False, unicode=True, width=width))
    lines = text.splitlines()
    copied = [line for line in lines if line.startswith(("  --> ", "   = help: "))]
    assert copied == [f"  --> {long.place}", f"   = help: {long.help}"]
    assert max(len(line) for line in lines if line not in copied) <= width
    assert all(engine.label in text for engine in engines)  # no label is broken over lines
    assert text.split() == render(report, Format.HUMAN).split()
    colored = render(report, Format.HUMAN, Style(color=True, unicode=True, width=width))
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == text


def test_a_pipe_gets_each_text_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert style_for(io.StringIO(), {}).width is None
