"""What real engines did with small drafters, and the contracts, without an engine."""

import copy
import json
from pathlib import Path

import pytest

from eyas.engines import EngineRef, read
from eyas.probe.compare import Disagreement, disagreements
from eyas.probe.fixture import Fixture, read_fixture
from eyas.probe.observed import Observed
from eyas.spec import Served

FIXTURES = Path(__file__).parent / "fixtures"
FILES = sorted(FIXTURES.rglob("*.json"))


def judged(fixture: Fixture, observed: Observed) -> tuple[Disagreement, ...]:
    ref = EngineRef(name=observed.engine, version=observed.version, runner=fixture.runner)
    served = read(ref, fixture.checkpoint, target=fixture.target, launch=fixture.launch)
    assert isinstance(served, Served), served
    return disagreements(served, observed, fixture.checkpoint.files)


@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_contract_says_what_the_engine_did(file: Path, tmp_path: Path) -> None:
    fixture = read_fixture(file, tmp_path)
    assert judged(fixture, fixture.observed) == ()


@pytest.mark.parametrize("engine", sorted({path.parent.name for path in FILES}))
def test_the_fixtures_of_an_engine_show_more_than_one_outcome(engine: str) -> None:
    records = [json.loads(p.read_text())["observed"] for p in (FIXTURES / engine).glob("*.json")]
    stages = {record["stage"] for record in records}
    assert {None, "config", "load"} <= stages
    if engine.startswith("llamacpp"):  # it loads all of a file or none, and tells no parameters
        assert {"joining the target", "first request"} <= stages
        return
    fates = {t["fate"] for record in records for t in record["tensors"].values()}
    assert {"landed", "lost"} <= fates
    left = {
        segment["left"]
        for record in records
        if record["status"] == "ok"
        for parameter in record["parameters"].values()
        for segment in parameter["segments"]
    }
    assert "memory" in left


def test_a_changed_observation_disagrees(tmp_path: Path) -> None:
    file = next(p for p in FILES if json.loads(p.read_text())["observed"]["parameters"])
    fixture = read_fixture(file, tmp_path)
    record = json.loads(file.read_text())["observed"]

    def subjects(changed: dict[str, object]) -> set[str]:
        return {d.subject.partition(" ")[0] for d in judged(fixture, Observed.parse(changed))}

    raised = record | {"status": "raises", "stage": "load"}
    assert subjects(raised | {"error": {"type": "ValueError", "message": "no"}}) == {"outcome"}

    lost = copy.deepcopy(record)
    name, tensor = next((n, t) for n, t in lost["tensors"].items() if t["fate"] == "landed")
    tensor |= {"fate": "lost", "parameters": []}
    assert subjects(lost) == {"tensor"}, name

    for change in (
        lambda s: s | {"offset": s["offset"] + 1},
        lambda s: s | {"tensor": None, "left": "memory", "offset": None},
        lambda s: s | {"also": ["model.safetensors :: another.weight"]},
        lambda s: s | {"untouched": 1},
    ):
        moved = copy.deepcopy(record)
        segments = next(
            p["segments"] for p in moved["parameters"].values() if p["segments"][0]["tensor"]
        )
        segments[0] = change(segments[0])
        assert subjects(moved) == {"parameter"}

    fewer = copy.deepcopy(record)
    fewer["parameters"].popitem()
    assert subjects(fewer) == {"parameter"}

    other = copy.deepcopy(record)
    other["facts"]["rms_norm_eps"] = 1e-3
    assert subjects(other) == {"rms_norm_eps"}
