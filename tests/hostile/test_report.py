"""What a hostile config may get into a report: words in one line, and nothing for a terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eyas
from eyas.checkpoint import open_checkpoint, write_sparse
from eyas.checks import as_trained, check
from eyas.checks.render import facts
from eyas.engines import EngineRef, Launch
from eyas.engines.stop import NotCovered, Refused
from eyas.errors import CheckpointError
from eyas.spec import Claim, Stage

Make = Callable[..., Path]
WILD = [
    {"hidden_act": "silu\nerror[L202]\x1b[2J"},
    {"rope_parameters": {"rope_type": "yarn\n\x1b[2J", "rope_theta": 1e4}},
    {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "mscale": "\n\x1b[2J"}},
]


@pytest.mark.parametrize("config", WILD, ids=["activation", "kind", "number"])
def test_a_fact_stays_in_its_line(make_drafter: Make, config: dict[str, Any]) -> None:
    sound, wild = make_drafter("sound"), make_drafter("wild", **config)
    shown = [
        facts.render_human(as_trained(open_checkpoint(d), target=None), "so") for d in (sound, wild)
    ]

    assert len(shown[1].splitlines()) == len(shown[0].splitlines())
    assert "\x1b" not in shown[1]


@pytest.mark.parametrize("config", WILD[1:], ids=["kind", "number"])
def test_a_finding_stays_in_its_line(make_drafter: Make, config: dict[str, Any]) -> None:
    old = EngineRef.parse("sglang@0.5.8")  # knows no rope_parameters

    report = check(open_checkpoint(make_drafter(**config)), [old], target=None, launch=Launch())

    (found,) = [found for found in report.findings if found.code == "N503"]
    assert found.message.isprintable()
    assert (found.expected or "").isprintable()


def test_what_eyas_or_an_engine_refuses_with_is_one_line() -> None:
    wild, spelt = "silu\n\x1b[2J\u202e\ud800", r"silu\n\x1b[2J\u202e\ud800"
    claim = Claim(text="", project="", version="", file="", lines="")

    assert CheckpointError(wild).message == spelt
    assert str(CheckpointError(wild)) == spelt
    assert Refused(Stage.CONSTRUCT, wild, claim).refusal.message == spelt
    assert NotCovered(wild).reason == spelt


def test_a_type_that_steers_the_terminal_is_spelt_out(tmp_path: Path) -> None:
    wild = "\u202epeagle"
    config = {"speculators_model_type": wild, "transformer_layer_config": {"hidden_size": 4}}
    headers = {"fc.weight": ("BF16", (4, 12)), "layers.0.hidden_norm.weight": ("BF16", (4,))}
    draft = write_sparse(tmp_path / "draft", config, headers)
    report = eyas.check(draft, engines="vllm@0.33.0:v1")
    said = [text for f in report.findings for text in (f.message, f.found, f.place, f.help)]
    assert all(text.isprintable() for text in said)
    assert any("\\u202epeagle" in text for text in said)
