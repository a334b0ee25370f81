"""Small drafters as vLLM reads them."""

from __future__ import annotations

from typing import Any

from tests.engines.drafters import Shapes, drafter, target

from eyas.engines import EngineRef, Launch, read
from eyas.spec import NotChecked, Served, TensorLanding


def outcome(
    config: dict[str, Any],
    tensors: Shapes,
    *options: str,
    engine: str = "vllm@0.33.0:v2",
    **facts: Any,
) -> Served | NotChecked:
    return read(
        EngineRef.parse(engine),
        drafter(config, tensors),
        target=target(**facts),
        launch=Launch.parse(options),
    )


def served(config: dict[str, Any], tensors: Shapes, *options: str, **facts: Any):  # type: ignore[no-untyped-def]
    result = outcome(config, tensors, *options, **facts)
    assert isinstance(result, Served), result
    if result.landing is not None:
        assert result.landing.imbalance() == ()
    return result


def served_by_v1(config: dict[str, Any], tensors: Shapes, *options: str, **facts: Any):  # type: ignore[no-untyped-def]
    return served(config, tensors, *options, **{"engine": "vllm@0.33.0:v1"} | facts)


def tensor(result: Served, name: str) -> TensorLanding:
    return next(t for t in result.landing.tensors if t.name == name)
