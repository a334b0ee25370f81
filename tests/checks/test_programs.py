"""The formats for programs: SARIF's required structure, GitHub's commands and their escapes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
from tests.checks.test_render import LOST, REPORT

from eyas.checks import RULES, CheckedFile, Severity
from eyas.checks.render import Format, render
from eyas.checks.render.github import command

FILES = (
    CheckedFile(name="config.json", bytes=10, sha256="ab" * 32),
    CheckedFile(name="model.safetensors", bytes=2**33, sha256=None),
)
WITH_FILES = replace(REPORT, subject=replace(REPORT.subject, files=FILES))


def run_of(text: str) -> dict[str, Any]:
    """The one run of a SARIF log, after what the specification requires of log and run.

    Section numbers are those of SARIF 2.1.0.
    """
    log = json.loads(text)
    assert log["version"] == "2.1.0"  # 3.13.2
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]  # 3.13.4
    driver = run["tool"]["driver"]  # 3.14.6, 3.18.2
    assert driver["name"] == "eyas"  # 3.19.8
    identifiers = [rule["id"] for rule in driver["rules"]]  # 3.49.3
    assert identifiers == [rule.code for rule in RULES]
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]  # 3.49.9, 3.12.3
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    for invocation in run["invocations"]:
        assert isinstance(invocation["executionSuccessful"], bool)  # 3.20.14
        for told in invocation["toolExecutionNotifications"]:
            assert told["message"]["text"]  # 3.58.5
            assert told["level"] in ("none", "note", "warning", "error")
    for artifact in run.get("artifacts", []):
        assert artifact["length"] >= -1  # 3.24.8
        assert all(artifact.get("hashes", {"sha-256": "x"}).values())  # 3.24.11
    for result in run.get("results", []):
        assert result["message"]["text"]  # 3.27.11
        assert identifiers[result["ruleIndex"]] == result["ruleId"]  # 3.27.5, 3.27.6
        assert result["level"] in ("none", "note", "warning", "error")  # 3.27.10
        (location,) = result["locations"]
        physical = location["physicalLocation"]  # 3.29.3: an artifact or an address
        uri = physical["artifactLocation"]["uri"]
        assert uri.isascii()
        assert " " not in uri
        assert urlparse(uri).path
        assert physical["region"]["startLine"] >= 1  # 3.30.5; GitHub shows none without it
        assert location["logicalLocations"][0]["fullyQualifiedName"]
        assert all(isinstance(v, str) for v in result["partialFingerprints"].values())  # 3.27.17
    return run


def test_sarif_has_a_result_for_each_finding() -> None:
    run = run_of(render(WITH_FILES, Format.SARIF))
    (found,) = run["results"]
    assert (found["ruleId"], found["level"]) == ("L202", "error")
    assert found["message"]["text"].startswith(LOST.message)
    assert LOST.help in found["message"]["text"]
    location = found["locations"][0]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "draft/model.safetensors"
    assert location["logicalLocations"][0]["name"] == "layers.0.*"
    assert [a["location"]["uri"] for a in run["artifacts"]] == [
        "draft/config.json",
        "draft/model.safetensors",
    ]


def test_sarif_names_what_was_not_checked() -> None:
    (invocation,) = run_of(render(WITH_FILES, Format.SARIF))["invocations"]
    told = [n["message"]["text"] for n in invocation["toolExecutionNotifications"]]
    assert invocation["executionSuccessful"]
    assert told == [
        "not checked: vllm 9.0: no contract",
        "not run: T701: no --target",
        "not run: T702: no --target",
        "not run: T703: no --target",
        "not run for sglang@0.5.11: B601: no depth",
    ]


@pytest.mark.parametrize("severity", list(Severity))
def test_severities_become_sarif_levels(severity: Severity) -> None:
    found = replace(LOST, severity=severity)
    (result,) = run_of(render(replace(WITH_FILES, findings=(found,)), Format.SARIF))["results"]
    assert result["level"] == {"error": "error", "warning": "warning", "info": "note"}[severity]


def test_fingerprints_tell_findings_apart_and_stay() -> None:
    other = replace(LOST, place="model.safetensors :: fc.weight")
    again = replace(LOST, message="said in other words")
    run = run_of(render(replace(WITH_FILES, findings=(LOST, other, again)), Format.SARIF))
    first, second, third = (r["partialFingerprints"]["place/v1"] for r in run["results"])
    assert first == third != second


@pytest.mark.parametrize(
    ("path", "revision", "uri", "file"),
    [
        ("./a draft", None, "a%20draft/config.json", "a draft/config.json"),
        ("/x/é", None, "file:///x/%C3%A9/config.json", "/x/é/config.json"),
        ("d/model.safetensors", None, "d/config.json", "d/config.json"),
        ("org/name@v1", "c0ffee", "https://huggingface.co/org/name/blob/c0ffee/config.json", None),
        ("hf://org/name", "1a", "https://huggingface.co/org/name/blob/1a/config.json", None),
    ],
)
def test_places_are_files_of_the_subject(
    path: str, revision: str | None, uri: str, file: str | None
) -> None:
    subject = replace(WITH_FILES.subject, path=path, revision=revision)
    # What is about an engine's parameter, or its launch, is about the config that asks for it.
    found = replace(LOST, place="sglang 0.5.11 :: model.fc.weight")
    report = replace(WITH_FILES, subject=subject, findings=(found,))
    (result,) = run_of(render(report, Format.SARIF))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri
    annotation = render(report, Format.GITHUB).splitlines()[1]
    given = dict(pair.split("=") for pair in annotation.split("::")[1].split(" ", 1)[1].split(","))
    assert unquote(given.get("file", "")) == (file or "")


def test_github_has_the_verdict_the_findings_and_what_was_not_checked() -> None:
    lines = render(WITH_FILES, Format.GITHUB).splitlines()
    assert lines[0].startswith("::notice title=eyas check ./draft::fail: sglang 0.5.11 · pass")
    assert lines[1].startswith(
        "::error file=draft/model.safetensors,title=L202 layer-dropped::" + LOST.message + "%0A"
    )
    assert all(line.startswith("::notice title=eyas%3A not checked::") for line in lines[2:])
    assert "T701, T702, T703" in lines[3]
    assert "L206" in lines[-1]


def test_nothing_in_a_checkpoint_can_be_read_as_a_command() -> None:
    hostile = replace(
        LOST,
        place="model.safetensors :: a\n::set-env name=PATH::/x",
        message="100%\r\n::error::x",
        name="a,file=b:c",
    )
    text = render(replace(WITH_FILES, findings=(hostile,)), Format.GITHUB)
    assert all(line.startswith(("::notice title=", "::error file=")) for line in text.splitlines())
    assert "100%25%0D%0A::error::x" in text
    assert "title=L202 a%2Cfile=b%3Ac::" in text


def test_a_command_without_properties_has_no_blank() -> None:
    assert command("notice", "100%", file=None) == "::notice::100%25"


def test_the_page_of_rules_is_current() -> None:
    from eyas.checks.render.rules import page

    published = Path(__file__).resolve().parents[2] / "docs" / "rules.md"
    assert published.read_text(encoding="utf-8") == page(), "run: python scripts/rules_page.py"


def test_the_page_has_every_rule_once_and_links_to_it() -> None:
    from eyas.checks.render.rules import page

    text = page()
    for rule in RULES:
        assert text.count(f"\n### {rule.title}\n") == 1
        assert text.count(f"(#{rule.title.lower().replace(' ', '-')})") == 1
