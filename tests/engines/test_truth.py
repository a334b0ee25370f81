"""The contracts against what the real engines did, where the records are at hand."""

import copy
import json
from pathlib import Path

import pytest
from benchmarks.score_truth import FLOOR_ENGINES, disagreements, report, score

from eyas.checkpoint import open_checkpoint, open_target
from eyas.engines import EngineRef, Launch, read
from eyas.spec import Served

RECORDS_OF_SGLANG = 9 * 136  # versions and variants
UNREAD_FOLDERS = {
    "which model.safetensors.index.json names",  # and which is not there
    "also holds",  # another file, and nothing says which is read last
}


@pytest.fixture
def truth(shared: Path) -> Path:
    return shared / "cases" / "truth"


def test_every_record_of_the_floor_is_met(truth: Path) -> None:
    result = score(truth, everything=False, seed=0)
    assert result.disagreements == [], report(result)
    assert result.scored == result.met == 33 * len(FLOOR_ENGINES)


def test_no_record_that_is_read_disagrees(truth: Path) -> None:
    result = score(truth, everything=True, seed=1)
    assert result.disagreements == [], report(result)
    assert result.scored > 900
    sglang = [tally for (_, engine), tally in result.scores.items() if engine.startswith("sglang")]
    assert sum(tally.scored + tally.skipped for tally in sglang) == RECORDS_OF_SGLANG
    # What eyas says it does not read of SGLang is a folder, never a class, a version or a config.
    left = [skip for skip in result.skips if " sglang@" in skip]
    assert len(left) == sum(tally.skipped for tally in sglang)
    assert {
        reason for skip in left for reason in UNREAD_FOLDERS if reason in skip
    } == UNREAD_FOLDERS
    assert all(any(reason in skip for reason in UNREAD_FOLDERS) for skip in left)


def test_the_scorer_sees_a_difference(truth: Path) -> None:
    records = json.loads((truth / "truth.json").read_text())
    record = next(
        r
        for r in records
        if (r["variant"], r["engine"], r["version"]) == ("good_layers0_flat", "sglang", "0.5.11")
    )
    variant = next(
        v
        for v in json.loads((truth / "variants.json").read_text())
        if v["variant"] == record["variant"]
    )
    checkpoint = open_checkpoint(truth / "variants" / record["variant"])
    target = open_target(truth / "targets" / variant["target"])
    served = read(EngineRef.parse("sglang@0.5.11"), checkpoint, target=target, launch=Launch())
    assert isinstance(served, Served)
    assert list(disagreements(record, served, checkpoint)) == []
    for key in ("dropped", "unwritten", "filled_from", "unwritten_init"):
        changed = copy.deepcopy(record)
        if isinstance(changed[key], list):
            changed[key].pop()
        else:
            changed[key].popitem()
        assert len(list(disagreements(changed, served, checkpoint))) == 1, key
    raised = {**record, "stage": "load", "error": "ValueError"}
    assert len(list(disagreements(raised, served, checkpoint))) == 1
