"""The fuzzer: a sample of its mutants, and that it finds what it is there to find."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import fuzz_trial
from benchmarks.fuzz_trial import STAGES, Laboratory, versions

from eyas.engines import ENGINES, Engine

ROOT = Path(__file__).resolve().parents[2]
SEEDS = range(500)

# Trials that misbehave, in the child of a real run.
_FAULTS = """
import os, signal, sys, time
from benchmarks import fuzz, fuzz_child, fuzz_supervisor
from benchmarks.fuzz_trial import Laboratory, Outcome

def attempt(self, seed):
    if seed == 3:
        while True: pass
    if seed == 5:
        os._exit(9)
    if seed == 7:
        bytearray(4 * fuzz_child.MEMORY)
    if seed == 9:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(600)
    return Outcome(stage=5)

Laboratory.__init__ = lambda self, workplace: None
Laboratory.attempt = attempt
Laboratory.recipe = []
fuzz_child.SECONDS, fuzz_supervisor.PATIENCE = 0.2, 1.0
sys.exit(fuzz.main())
"""


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    """One laboratory for all trials."""
    return Laboratory(tmp_path_factory.mktemp("laboratory"))


def test_a_sample_of_mutants(laboratory: Laboratory) -> None:
    outcomes = {seed: laboratory.attempt(seed) for seed in SEEDS}

    assert {s: (o.failure, o.recipe, o.trace) for s, o in outcomes.items() if o.failure} == {}
    reached = {
        stage: sum(outcome.stage > i for outcome in outcomes.values()) / len(outcomes)
        for i, stage in enumerate(STAGES)
    }
    assert reached["opened"] >= 0.3, reached
    assert reached["judged"] >= 0.2, reached


def test_a_seed_always_makes_the_same_mutant(laboratory: Laboratory) -> None:
    recipes = []
    for _ in range(2):
        outcomes = [laboratory.attempt(seed) for seed in range(5)]
        recipes.append((outcomes, laboratory.recipe))
    assert recipes[0] == recipes[1]


def test_an_exception_that_escapes_is_a_failure(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("fc.weight")

    monkeypatch.setattr(fuzz_trial.checking, "report_on", broken)
    failures = {laboratory.attempt(seed).failure for seed in range(20)}

    assert any(failure and failure.startswith("KeyError at ") for failure in failures)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_the_ends_of_every_contract_are_fuzzed(engine: Engine) -> None:
    fuzzed = {(ref.name, ref.version, ref.runner) for ref in versions()}
    for version in (engine.oldest, engine.newest):
        for runner in engine.runners or (None,):
            assert (engine.name, version, runner) in fuzzed


def test_a_run_outlives_what_hangs_dies_or_eats_memory(tmp_path: Path) -> None:
    arguments = ["--first", "0", "--count", "12", "--folder", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", _FAULTS, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
        capture_output=True,
        text=True,
        timeout=120,
    )

    corpus = (tmp_path / "failures.jsonl").read_text().splitlines()
    found = {entry["seed"]: entry["failure"] for entry in map(json.loads, corpus)}
    assert sorted(found) == [3, 5, 7, 9], done.stderr
    assert found[3].startswith("more than")
    assert found[5] == "ends the process: 9"
    assert found[7] == "ends the process: 1"
    assert "MemoryError" in done.stderr
    assert "hangs" in found[9]
    assert done.returncode == 1
    assert done.stdout.startswith("12/12 trials"), done.stdout
