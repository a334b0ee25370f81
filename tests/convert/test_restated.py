"""What computes the same in other words is written so for an engine, and the plan says it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.convert.cases import CASES
from tests.convert.scene import Scene, save_target

from eyas.checkpoint.rows import GatheredColumns, Made, blocks
from eyas.convert import plan
from eyas.engines import EngineRef

SAID = {
    ("descending", "vllm@0.33.0:v1"): "the captured states are put in the order of the layers",
    ("second input_layernorm", "sglang@0.5.23"): "input_layernorm of layers after the first is",
    ("second hidden_norm", "vllm@0.33.0:v2"): "hidden_norm of layers after the first is called",
    ("no map", "llamacpp@11549"): "d2t is made, which leads to the first ids",
    ("map of a whole vocabulary", "vllm@0.32.0:v1"): "d2t is left out, which leads from each id",
    ("bias of q, k, v", "vllm@0.33.0:v1"): "a bias of zeros is stored for o_proj",
    ("bias of fc", "sglang@0.5.8"): "a bias of zeros is stored for o_proj",
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(save_target(tmp_path_factory.mktemp("target") / "model", tied=False))


@pytest.mark.parametrize(("name", "engine"), SAID, ids="-".join)
def test_the_plan_says_what_is_said_otherwise(
    name: str, engine: str, scene: Scene, tmp_path: Path
) -> None:
    made = plan(
        scene.drafter(tmp_path / "draft", CASES[name]), EngineRef.parse(engine), target=scene.facts
    )
    assert any(SAID[name, engine] in change for change in made.changes), made.changes


@pytest.mark.parametrize(
    ("name", "engine"), [("plain", "vllm@0.33.0:v1"), ("no map", "sglang@0.5.23")]
)
def test_nothing_is_said_otherwise_without_need(
    name: str, engine: str, scene: Scene, tmp_path: Path
) -> None:
    draft = scene.drafter(tmp_path / "draft", CASES[name])
    assert plan(draft, EngineRef.parse(engine), target=scene.facts).changes in (
        (),
        ("t2d is left out, which d2t tells",),
    )


def test_columns_change_places_in_whole_parts() -> None:
    numbers = np.arange(60, dtype="<i8").reshape(5, 12)
    rows = GatheredColumns(Made("I64", numbers.shape, numbers.tobytes()), (2, 0, 1))
    expected = np.concatenate([numbers[:, 8:], numbers[:, :8]], axis=1)
    assert (rows.dtype, rows.shape) == ("I64", (5, 12))
    assert b"".join(blocks(rows, together=200)) == expected.tobytes()
    assert rows.read([range(1, 2), range(3, 5)]) == expected[[1, 3, 4]].tobytes()
