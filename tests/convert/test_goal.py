"""What a conversion is for, as it is typed."""

from __future__ import annotations

import pytest

from eyas.convert import DialectGoal, parse_goal
from eyas.engines import EngineRef
from eyas.errors import EngineError, UsageError


@pytest.mark.parametrize(
    ("typed", "goal"),
    [
        ("sglang", EngineRef(name="sglang", version="0.5.23")),
        ("vllm:v2", EngineRef(name="vllm", version="0.33.0", runner="v2")),
        ("vllm@0.32.0:v1", EngineRef(name="vllm", version="0.32.0", runner="v1")),
        (" SpecForge ", DialectGoal("specforge")),
        ("gguf", DialectGoal("gguf")),
    ],
)
def test_a_goal(typed: str, goal: object) -> None:
    assert parse_goal(typed) == goal


def test_a_name_that_is_none_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="no dialect that eyas writes") as caught:
        parse_goal("specforce")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("did you mean specforge?")


def test_a_version_without_a_contract() -> None:
    with pytest.raises(EngineError, match=r"9\.9\.9 is outside"):
        parse_goal("sglang@9.9.9")
