"""Which dialect a checkpoint is of, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from eyas import dialects
from eyas.dialects import named
from eyas.errors import ConversionError, NotADrafterError
from eyas.spec import Recognised


@pytest.mark.parametrize(
    ("config", "tensor", "kind"),
    [
        ({"architectures": ["DFlashDraftModel"]}, "fc.weight", "DFlash"),
        ({"architectures": ["DFlash2DraftModel"]}, "fc.weight", "DFlash 2"),
        ({"architectures": ["Qwen3DSparkModel"]}, "fc.weight", "DSpark"),
        ({"architectures": ["PEagleDraftModel"]}, "fc.weight", "P-EAGLE"),
        ({"architectures": ["X"], "speculators_model_type": "peagle"}, "fc.weight", "P-EAGLE"),
        ({"architectures": ["Qwen3_5ForConditionalGeneration"]}, "mtp.fc.weight", "MTP"),
        ({"architectures": ["Eagle4Model"]}, "fc.weight", "EAGLE-4"),
    ],
)
def test_other_kinds_are_known_by_name(
    build: Any, config: dict[str, Any], tensor: str, kind: str
) -> None:
    checkpoint = build(config, {tensor: (2, 2)})

    dialect, spec = dialects.read(checkpoint)

    assert dialect.name == "named"
    assert isinstance(spec, Recognised)
    assert spec.name == kind
    assert dialect.roles(checkpoint) == {}
    with pytest.raises(ConversionError):
        named.write(spec, ())


@pytest.mark.parametrize(
    ("config", "appearance"),
    [
        (
            {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 30},
            r"a 'LlamaForCausalLM' model of 30 layers with 1 tensors and no fusion layer \(fc\)",
        ),
        ({}, "a model without architectures in its config"),
        ({"architectures": "LlamaForCausalLM"}, "a model without architectures"),
        ({"architectures": [None]}, "a model without architectures"),
        ({"speculators_model_type": ["eagle3"]}, "a model without architectures"),
    ],
)
def test_what_is_no_drafter(build: Any, config: dict[str, Any], appearance: str) -> None:
    checkpoint = build(config, {"model.layers.0.mlp.up_proj.weight": (2, 2)})

    with pytest.raises(NotADrafterError, match=appearance) as refused:
        dialects.recognise(checkpoint)

    assert refused.value.hint == "give the drafter's directory; a target goes after --target"


def test_no_two_dialects_share_a_name() -> None:
    names = [dialect.name for dialect in dialects.DIALECTS]
    assert len(set(names)) == len(names) == 3
