"""Which dialect a checkpoint is of, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from eyas import dialects
from eyas.errors import ConversionError, NotADrafterError
from eyas.spec import Recognised

MTP = {"num_hidden_layers": 2, "architectures": ["DeepseekV3ForCausalLM"]}
LM = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2, "vocab_size": 64}
WHOLE = ("model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight", "model.layers.1.a.bias")


@pytest.mark.parametrize(
    ("config", "tensors", "dialect", "kind"),
    [
        ({"architectures": ["DFlash2DraftModel"]}, ("fc.weight",), "named", "DFlash 2"),
        ({"dflash_config": {"selector_rank": 4}}, ("fc.weight",), "named", "DFlash 2"),
        ({"architectures": ["DominoDraftModel"]}, ("fc.weight",), "named", "Domino"),
        ({"architectures": ["DFlashDraftModel"]}, ("prefix_gru.weight_ih_l0",), "named", "Domino"),
        ({"architectures": ["Eagle4Model"]}, ("fc.weight",), "named", "EAGLE-4"),
        ({"architectures": ["EagleLlamaForCausalLM"]}, ("fc.weight",), "named", "EAGLE-1"),
        ({"speculators_model_type": "xpress"}, ("fc.weight",), "named", "XPress"),
        ({"architectures": ["X"]}, ("medusa_heads.0.0.linear.weight",), "named", "Medusa"),
        (
            {"eagle_config": {"parallel_draft_step": 4}},
            ("fc.weight",),
            "named",
            "EAGLE with ModelOpt's parallel heads",
        ),
        ({"speculators_model_type": "quantum"}, ("fc.weight",), "speculators", "quantum"),
        ({"architectures": ["Qwen3_5Model"]}, ("mtp.fc.weight",), "mtp", "MTP"),
        (MTP, ("model.layers.2.eh_proj.weight", "model.norm.weight"), "mtp", "MTP"),
        ({"speculators_model_type": "mtp"}, ("fc.weight",), "mtp", "MTP"),
        (
            {"architectures": ["DeepseekV4ForCausalLM"]},
            ("mtp.0.markov_head.markov_w1.weight", "model.norm.weight"),
            "mtp",
            "DSpark inside the target",
        ),
        (LM, WHOLE, "assistant", "draft model"),
        (
            {"architectures": ["Gemma4DSparkModel"]},
            ("fc.weight",),
            "deepspec",
            "DSpark of DeepSpec",
        ),
        (
            {"architectures": ["Gemma4AssistantModel"]},
            ("fc.weight",),
            "newer",
            "Gemma4AssistantModel",
        ),
        ({"architectures": ["Warp9DraftModel"]}, ("fc.weight",), "newer", "Warp9DraftModel"),
    ],
)
def test_other_kinds_are_recognised_and_not_judged(
    build: Any, config: dict[str, Any], tensors: tuple[str, ...], dialect: str, kind: str
) -> None:
    checkpoint = build(config, dict.fromkeys(tensors, (2, 2)))

    found, spec = dialects.read(checkpoint)

    assert found.name == dialect
    assert isinstance(spec, Recognised)
    assert spec.name == kind
    assert kind in spec.unjudged
    assert spec.why in spec.unjudged
    assert spec.lacks in spec.unjudged
    assert dialect in ("deepspec",) or found.roles(checkpoint) == {}
    with pytest.raises(ConversionError):
        found.write(spec, ())


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
        ({"parallel_drafting": True, "pard_token": 3}, "a model without architectures"),
    ],
)
def test_what_is_no_drafter(build: Any, config: dict[str, Any], appearance: str) -> None:
    checkpoint = build(config, {"model.layers.0.mlp.up_proj.weight": (2, 2)})

    with pytest.raises(NotADrafterError, match=appearance) as refused:
        dialects.recognise(checkpoint)

    assert refused.value.hint == "give the drafter's directory; a target goes after --target"


def test_no_two_dialects_share_a_name() -> None:
    names = [dialect.name for dialect in dialects.DIALECTS]
    assert len(set(names)) == len(names) == 14


def test_what_is_only_read_says_so() -> None:
    only_read = set()
    for dialect in dialects.DIALECTS:
        try:
            dialect.write(Recognised(name="X", why="", lacks=""), ())
        except ConversionError as error:
            if "reads and does not write" in error.message:
                only_read.add(dialect.name)
    names = {dialect.name for dialect in dialects.DIALECTS}
    assert names - only_read == set(dialects.WRITABLE)
