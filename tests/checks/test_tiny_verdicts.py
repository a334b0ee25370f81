"""The recorded tiny cases: each engine and version range gives its verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eyas.checkpoint import open_checkpoint, open_target
from eyas.checks import Outcome, check
from eyas.engines import EngineRef, Launch
from eyas.engines.catalogue import engine_named
from eyas.engines.version import version_of

VERSIONS = {
    "sglang": (
        *("0.4.9", "0.5.4.post3", "0.5.8", "0.5.10.post1", "0.5.11"),
        *("0.5.12", "0.5.16", "0.5.18", "0.5.22", "0.5.23"),
    ),
    "vllm": ("0.32.0", "0.33.0"),
}
# Two cases tell what the V1 runner makes of ids in eagle_config, as their reasons say. The V2
# runner, which all others are about, does not read those ids: c01 has the same config as c06.
RUNNERS = {"c04_only_two_states_captured": "v1", "c06_convention_off_by_one": "v1"}
OUTCOMES = {"ok": Outcome.PASS, "warn": Outcome.WARN} | dict.fromkeys(
    ("degraded", "dropped-meaningful", "silent-loss", "fail", "raises"), Outcome.FAIL
)
CONTEXT = {"sglang": "context_length", "vllm": "max_model_len"}


def test_every_verdict_is_given(shared: Path) -> None:
    wrong, judged = [], 0
    for folder in sorted((shared / "cases" / "tiny").iterdir()):
        recorded = json.loads((folder / "expect.json").read_text())
        for expected in recorded["expect"]:
            refs = list(engines(folder.name, expected))
            assert refs, (folder.name, expected)
            for ref in refs:
                found = outcome(folder, ref, recorded["launch"])
                judged += 1
                if found is not OUTCOMES[expected["verdict"]]:
                    wrong.append((folder.name, str(ref), expected["verdict"], found))
    assert wrong == []
    assert judged > 130


def engines(case: str, expected: dict[str, str]) -> list[EngineRef]:
    """The versions that an expectation is about and that a contract covers."""
    names = list(VERSIONS) if expected["engine"] == "*" else [expected["engine"]]
    found = []
    for name in names:
        engine = engine_named(name)
        assert engine is not None
        for version in VERSIONS[name]:
            if engine.covers(version_of(version)) and within(version, expected["versions"]):
                runner = RUNNERS.get(case) if engine.runners else None
                found.append(EngineRef(name=name, version=version, runner=runner))
    return found


def within(version: str, versions: str) -> bool:
    """Whether `version` is in a range such as ``<=0.5.11`` or ``*``."""
    if versions == "*":
        return True
    bound = version_of(versions[2:])
    return version_of(version) <= bound if versions[:2] == "<=" else version_of(version) >= bound


def outcome(folder: Path, ref: EngineRef, recorded: dict[str, Any]) -> Outcome:
    settings = {key: value for key, value in recorded.items() if key != "engine"}
    if "context_length" in settings:  # one number, which each engine calls by its own name
        settings[CONTEXT[ref.name]] = settings.pop("context_length")
    report = check(
        open_checkpoint(folder),
        [ref],
        target=open_target(folder / "target_config.json"),
        launch=Launch.parse(f"{key}={value}" for key, value in settings.items()),
    )
    return report.engines[0].outcome
