"""P-EAGLE in flat configs: what makes it one, and what it has beyond EAGLE-3."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dialects.flat_drafter import D2T, FLAT, shapes

from eyas import dialects
from eyas.spec import Eagle3Spec, PEagleSpec

MASK = {"mask_hidden": (1, 1, 24)}


@pytest.mark.parametrize(
    ("config", "wrapper", "dialect", "mask", "depths"),
    [
        ({"architectures": ["PEagleDraftModel"]}, "", "specforge", None, None),
        ({"parallel_drafting": True, "ptd_token_id": 19}, "", "specforge", 19, None),
        ({"pard_token": 18}, "", "specforge", 18, None),
        (
            {
                "architectures": ["LlamaEagle3DraftModel"],
                "parallel_drafting": True,
                "mask_token_id": 17,
                "num_depths": 8,
            },
            "model.",
            "automodel",
            17,
            8,
        ),
    ],
)
def test_p_eagle(
    build: Any, config: Any, wrapper: str, dialect: str, mask: int | None, depths: int | None
) -> None:
    checkpoint = build(FLAT | config, shapes("layers.0.", wrapper) | MASK, d2t=D2T)

    found, spec = dialects.read(checkpoint)

    assert found.name == dialect
    assert isinstance(spec, PEagleSpec)
    assert (spec.name, spec.drafter.hidden_size.value) == ("P-EAGLE", 8)
    assert (spec.mask_token_id.value, spec.depths.value) == (mask, depths)
    assert spec.mask_hidden.value
    assert set(found.roles(checkpoint)) == set(checkpoint.tensors)
    assert dialects.unread_keys(checkpoint) == ()


def test_a_mask_state_alone_makes_no_p_eagle(build: Any) -> None:
    dialect, spec = dialects.read(build(FLAT, shapes("layers.0.") | MASK, d2t=D2T))

    assert dialect.name == "specforge"
    assert isinstance(spec, Eagle3Spec)
