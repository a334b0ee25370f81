"""Which drafters an evaluation runs for an engine; none of them is built here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.decode.oracle import tiny_target

from eyas.checkpoint import TargetFacts, open_checkpoint, open_target
from eyas.decode.arms import Arm, as_served
from eyas.engines import EngineRef, Launch
from eyas.model.served import Fill

Make = Callable[..., Path]


@pytest.fixture
def facts(tmp_path: Path) -> TargetFacts:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 8,
        "num_hidden_layers": 8,
        "num_attention_heads": 2,
        "vocab_size": 32,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    return open_target(tmp_path)


def arm(engine: str, draft: Path, facts: TargetFacts, *launch: str) -> Arm:
    return as_served(
        EngineRef.parse(engine), open_checkpoint(draft), tiny_target(), facts, Launch.parse(launch)
    )


def test_an_engine_that_loads_everything_leaves_nothing_to_chance(
    make_drafter: Make, facts: TargetFacts
) -> None:
    found = arm("sglang@0.5.23", make_drafter(layer="layers.0."), facts)
    assert (found.label, found.refusal) == ("sglang@0.5.23", None)
    assert [build.fill for build in found.builds] == [None]


def test_a_lost_layer_is_run_under_every_fill(make_drafter: Make, facts: TargetFacts) -> None:
    found = arm("sglang@0.5.10.post1", make_drafter(layer="layers.0."), facts)
    assert [build.fill for build in found.builds] == list(Fill)


def test_the_launch_is_in_the_label(make_drafter: Make, facts: TargetFacts) -> None:
    launch = ("speculative_algorithm=EAGLE", "vllm.method=eagle")
    found = arm("sglang@0.5.23", make_drafter(), facts, *launch)
    assert found.label == "sglang@0.5.23 speculative_algorithm=EAGLE"


def test_a_refusal_and_an_unknown_version_are_arms_without_builds(
    make_drafter: Make, facts: TargetFacts
) -> None:
    refused = arm("sglang@0.5.11", make_drafter(num_hidden_layers=2), facts)
    unknown = arm("sglang@0.9.9", make_drafter("other"), facts)
    assert (refused.builds, unknown.builds) == ((), ())
    assert refused.refusal is not None
    assert refused.refusal.startswith("does not start: ")
    assert unknown.refusal is not None
    assert unknown.refusal.startswith("not checked: ")
