"""RoPE in its three spellings."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dialects.flat_drafter import D2T, shapes, without

from eyas import dialects
from eyas.spec import Eagle3Spec, Rope


def read(build: Any, config: dict[str, Any], **maps: list[int]) -> Eagle3Spec:
    spec = dialects.read(build(config, shapes(), **(maps or {"d2t": D2T})))[1]
    assert isinstance(spec, Eagle3Spec)
    return spec


@pytest.mark.parametrize(
    ("keys", "rope"),
    [
        ({"rope_theta": 1e6, "rope_scaling": None}, Rope(theta=1e6, kind="default")),
        (
            {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2}},
            Rope(theta=5e5, kind="linear", scaling={"factor": 2}),
        ),
        (
            {"rope_parameters": {"rope_type": "llama3", "rope_theta": 7, "factor": 8.0}},
            Rope(theta=7.0, kind="llama3", scaling={"factor": 8.0}),
        ),
        (
            {"rope_theta": 3.0, "rope_parameters": {"rope_type": "default"}},
            Rope(theta=3.0, kind="default"),
        ),
        (
            {
                "rope_theta": 10000,
                "rope_scaling": {"rope_type": "yarn", "factor": 4},
                "rope_parameters": {"rope_type": "default", "rope_theta": 20000},
            },
            Rope(theta=20000.0, kind="default"),
        ),
        (
            {"rope_theta": 1.0, "rope_scaling": {"type": "mrope", "mrope_section": [1, 1]}},
            Rope(theta=1.0, kind="default", scaling={"mrope_section": [1, 1]}),
        ),
    ],
)
def test_rope_in_its_spellings(build: Any, keys: dict[str, Any], rope: Rope) -> None:
    assert read(build, without("rope_theta") | keys).rope.value == rope


def test_a_rope_that_is_stated_twice_names_both_places(build: Any) -> None:
    parameters = {"rope_type": "default", "rope_theta": 20000}
    contradicted = without("rope_theta") | {"rope_parameters": parameters}
    contradicted["rope_scaling"] = {"rope_type": "yarn", "factor": 4}

    key = read(build, contradicted).rope.key

    assert key == "config.json :: rope_parameters.rope_theta, against config.json :: rope_scaling"
