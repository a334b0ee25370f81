"""The probe of llama.cpp: its stand-in for a target, its record, and the engine itself."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import eyas.probe
from eyas.checkpoint import open_checkpoint, open_target
from eyas.engines import Launch
from eyas.probe.fixture import read_fixture
from eyas.probe.job import job_of
from eyas.probe.observed import Observed

SCRIPTS = Path(eyas.probe.__file__).parent / "scripts"
FIXTURES = sorted((Path(__file__).parent / "fixtures" / "llamacpp-2026.10.11549").glob("*.json"))
SIZES = {"hidden_size": 16, "num_hidden_layers": 3, "vocab_size": 40}
FACTS = '["facts", {"hidden_size": 8}]'


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))


@pytest.mark.parametrize("tied", [False, True])
def test_a_stand_in_is_as_large_as_its_target(tmp_path: Path, scripts: None, tied: bool) -> None:
    write_target = importlib.import_module("llamacpp_target").write_target
    config = {"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": tied, **SIZES}
    (tmp_path / "config.json").write_text(json.dumps(config))
    made = write_target(tmp_path, tmp_path / "target.gguf")
    facts = open_target(made.path)
    assert (facts.hidden_size, facts.num_layers, facts.vocab_size) == tuple(SIZES.values())
    assert (facts.tie_word_embeddings, made.tokens) == (tied, 40)
    assert len(open_checkpoint(made.path).tensors) == 2 + (not tied) + 9 * 3


@pytest.mark.parametrize(
    "config", [{"architectures": ["Qwen3ForCausalLM"], **SIZES}, {"architectures": None}]
)
def test_there_is_no_stand_in_for_another_class(
    tmp_path: Path, scripts: None, config: dict[str, object]
) -> None:
    write_target = importlib.import_module("llamacpp_target").write_target
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert write_target(tmp_path, tmp_path / "target.gguf") is None


def test_what_ends_beside_a_target_has_its_stage(scripts: None) -> None:
    record_of = importlib.import_module("llamacpp_probe").record
    joining = ['["log", 2, "loading model tensors"]', FACTS, '["stage", "joining the target"]']
    died = record_of("1", [*joining, "ops.cpp:9: GGML_ASSERT(i < n) failed"], 6)
    assert (died["status"], died["stage"]) == ("raises", "joining the target")
    assert died["error"]["message"] == "ops.cpp:9: GGML_ASSERT(i < n) failed"
    asked = [*joining, '["stage", "first request"]']
    assert record_of("1", [*asked, '["served"]'], 0)["status"] == "ok"
    assert record_of("1", asked, 0)["status"] == "unknown"  # it ended, and nobody says why
    assert record_of("1", [FACTS], 9)["status"] == "unknown"
    assert record_of("1", [*asked, '["served"]'], 0)["joined"]
    assert not record_of("1", [FACTS], 0)["joined"]


@pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp has no wheel for this machine"
)
def test_the_engine_does_what_the_fixtures_hold(tmp_path: Path) -> None:
    jobs, expected = [], []
    for file in FIXTURES:
        place = tmp_path / file.stem
        (place / "job").mkdir(parents=True)
        fixture = read_fixture(file, place)
        job = job_of("llamacpp", None, fixture.checkpoint, fixture.target, Launch(), place / "job")
        jobs.append(job.plain())
        expected.append(fixture.observed.raised and fixture.observed.raised.stage)
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    out = tmp_path / "out.jsonl"
    line = [sys.executable, SCRIPTS / "llamacpp_probe.py", tmp_path / "jobs.json", out]
    subprocess.run(line, check=True, capture_output=True, env=os.environ, timeout=300)
    records = [Observed.parse(json.loads(text)) for text in out.read_text().splitlines()]
    assert [r.raised and r.raised.stage for r in records] == expected
