"""A pickle is inspected, checked and converted as the same tensors in safetensors are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.checkpoint.torch_archive import PICKLE, pickle_weights

from eyas.checkpoint import Format, open_checkpoint
from eyas.checks import check
from eyas.cli import main
from eyas.convert import convert
from eyas.engines import EngineRef, Launch

Make = Callable[..., Path]
ENGINES = ("sglang@0.5.10.post1", "sglang@0.5.23", "vllm@0.33.0")


@pytest.mark.parametrize("layer", ["midlayer.", "layers.0."])
@pytest.mark.parametrize("named", ["", PICKLE])
def test_the_verdict_is_the_same(layer: str, named: str, make_drafter: Make) -> None:
    refs = [EngineRef.parse(text) for text in ENGINES]
    plain = make_drafter("plain", layer=layer)
    pickled = pickle_weights(make_drafter("pickled", layer=layer)) / named

    one, other = (check(open_checkpoint(p), refs, launch=Launch()) for p in (plain, pickled))

    assert [e.outcome for e in one.engines] == [e.outcome for e in other.engines]
    assert [e.coverage for e in one.engines] == [e.coverage for e in other.engines]
    codes = [f.code for f in other.findings]
    assert sorted(codes) == sorted([*(f.code for f in one.findings), "C106"])
    assert [f.name for f in other.subject.files] == ["config.json", PICKLE]


@pytest.mark.parametrize("named", ["", PICKLE])
def test_the_conversion_writes_the_same_bytes(
    named: str, make_drafter: Make, tmp_path: Path
) -> None:
    plain = make_drafter("plain", layer="layers.0.")
    pickled = pickle_weights(make_drafter("pickled", layer="layers.0.")) / named
    assert open_checkpoint(pickled).format is Format.PICKLE

    for source, out in ((plain, "a"), (pickled, "b")):
        convert(open_checkpoint(source), tmp_path / out, EngineRef.parse(ENGINES[0]))

    written = tmp_path / "b" / "model.safetensors"
    assert written.read_bytes() == (tmp_path / "a" / "model.safetensors").read_bytes()
    assert open_checkpoint(tmp_path / "b").format is Format.SAFETENSORS


def test_a_reader_is_told_that_nothing_was_run(
    make_drafter: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = str(pickle_weights(make_drafter()))
    said = "a pickle, read as weights only: nothing of it was run"

    assert main(["inspect", draft]) == 0
    assert said in capsys.readouterr().out
    assert main(["check", draft, "--engine", ENGINES[1]]) == 0
    report = capsys.readouterr().out
    assert said in " ".join(report.split())
    assert report.startswith("pass: sglang 0.5.23")
    assert main(["inspect", draft, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "pickle"


def test_the_command_beside_a_single_file_writes_to_a_place_of_its_own(
    make_drafter: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = pickle_weights(make_drafter(layer="layers.0.")) / PICKLE

    main(["check", str(draft), "--engine", ENGINES[0]])

    out = capsys.readouterr().out
    assert f"eyas convert {draft} {draft.with_suffix('')}-sglang --to {ENGINES[0]}" in out
