"""Small drafters as SGLang reads them."""

from __future__ import annotations

from typing import Any

from tests.engines.drafters import Shapes, drafter, target

from eyas.engines import EngineRef, Launch, read
from eyas.spec import NotChecked, Served


def outcome(
    version: str, config: dict[str, Any], tensors: Shapes, *options: str, **facts: Any
) -> Served | NotChecked:
    return read(
        EngineRef.parse(f"sglang@{version}"),
        drafter(config, tensors),
        target=target(**facts),
        launch=Launch.parse(options),
    )


def served(version: str, config: dict[str, Any], tensors: Shapes, *options: str, **facts: Any):  # type: ignore[no-untyped-def]
    result = outcome(version, config, tensors, *options, **facts)
    assert isinstance(result, Served), result
    return result
