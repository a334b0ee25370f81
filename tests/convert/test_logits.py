"""What an engine computes of a converted drafter is what was trained, at three draft steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.convert.cases import CASES, refusals
from tests.convert.scene import ENGINES, Scene, difference, save_target

from eyas.checkpoint import open_checkpoint
from eyas.convert import convert
from eyas.engines import EngineRef
from eyas.errors import ConversionError
from eyas.model.trained import trained_drafter

CLOSE = 1e-5


@pytest.fixture(scope="session", params=[False, True], ids=["untied", "tied"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(save_target(tmp_path_factory.mktemp("target") / "model", tied=request.param))


@pytest.mark.parametrize("name", CASES)
def test_every_engine_computes_what_was_trained(
    name: str, scene: Scene, tmp_path: Path, measured: Callable[[str], None]
) -> None:
    first = scene.drafter(tmp_path / "first", CASES[name])
    trained = scene.logits(trained_drafter(first, scene.target))
    assert trained[trained.isfinite()].std() > 0.1  # of a drafter that says something
    refused, furthest = set(), 0.0
    for engine in ENGINES:
        out = tmp_path / (f"{engine}.gguf" if engine.startswith("llamacpp") else engine)
        try:
            convert(first, out, EngineRef.parse(engine), target=scene.facts)
        except ConversionError:
            refused.add(engine)
            continue
        written = open_checkpoint(out)
        for drafter in (
            scene.as_served(engine, written),
            trained_drafter(written, scene.target),
        ):
            apart = difference(trained, scene.logits(drafter))
            assert apart <= CLOSE, engine
            furthest = max(furthest, apart)
    assert refused == set(refusals(name))
    measured(f"{len(ENGINES) - len(refused)} of {len(ENGINES)} engines, apart {furthest:.1e}")
