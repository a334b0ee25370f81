"""The choices that a writer leaves to its caller, and the names and keys that follow from them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects.drawn import FLAG, WHOLE, drafters, fused, mha
from tests.dialects.drawn_block import block_drafters, block_headers
from tests.dialects.written import exact

from eyas import dialects
from eyas.dialects import WRITABLE
from eyas.errors import CheckpointError, ConversionError
from eyas.spec import DFlashSpec, Eagle3Spec, Feedback, LaterNorm, Ownership

OFF = st.just(False)
OWN, TARGET = (Ownership.OWN,), (Ownership.TARGET,)


@settings(max_examples=30, deadline=None)
@given(
    spec=drafters(
        attention=mha(qk_norm=False, bias=OFF),
        conditioning=fused(lowest=1, bias=False, norms=OFF, fc_norms=OFF),
        layers=3,
        later_norms=(LaterNorm.HIDDEN_NORM,),
        target_name=st.none(),
        flags=OFF,
        feedbacks=(Feedback.PRE_NORM,),
        own_head=True,
        one_width=True,
        vocabularies=WHOLE,
    ),
    named=FLAG,
)
def test_modelopt_s_megatron_export(kit: Any, spec: Eagle3Spec, named: bool) -> None:
    headers, deep = kit.headers_of(spec), spec.num_layers.value > 1
    told = not named and (deep or spec.embedding.value is Ownership.OWN)

    exact(WRITABLE["modelopt"], spec, headers, {}, form=None if told else "megatron")
    _, names = WRITABLE["modelopt"].write(spec, headers, form="megatron")  # type: ignore[call-arg]

    role = "layers.0.hidden_norm.weight"
    assert names[role] == ("midlayer.0." if deep else "midlayer.") + "hidden_norm.weight"
    assert not deep or names["layers.1.hidden_norm.weight"] == "midlayer.1.hidden_norm.weight"
    if deep or spec.embedding.value is Ownership.OWN:
        with pytest.raises(ConversionError, match="Hugging Face export"):
            WRITABLE["modelopt"].write(spec, headers, form="huggingface")  # type: ignore[call-arg]


BLOCK: dict[str, Any] = {
    "dflash": {"heads": False, "anchored": False, "owns": TARGET},
    "specforge": {"by_markov": True, "owns": TARGET},
    "deepspec": {"anchored": True, "owns": OWN},
}


@pytest.mark.parametrize("name", BLOCK)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_the_target_s_depth_is_no_fact_of_the_drafter(kit: Any, name: str, data: Any) -> None:
    spec: DFlashSpec = data.draw(
        block_drafters(
            causal=("none",),
            sliding=False,
            reduced=False,
            lowest=1,
            one_width=True,
            block_sizes=st.integers(1, 32),
            **BLOCK[name],
        )
    )

    config = exact(WRITABLE[name], spec, block_headers(spec), {}, target_layers=36)

    # SpecForge would spread ids that are absent over the target.
    spread = name == "specforge" and spec.boundaries.value is None
    assert config.get("num_target_layers") == (None if spread else 36)


@settings(max_examples=20, deadline=None)
@given(
    spec=block_drafters(
        causal=("none",), sliding=False, anchored=True, owns=OWN, reduced=False, one_width=True
    )
)
def test_deepspec_s_ids_name_the_embeddings_with_minus_one(kit: Any, spec: DFlashSpec) -> None:
    config = exact(WRITABLE["deepspec"], spec, block_headers(spec), {}, num_anchors=64)

    assert config["num_anchors"] == 64
    boundaries = spec.boundaries.value or ()
    assert (-1 in config.get("target_layer_ids", ())) == (0 in boundaries)


def test_no_id_lies_before_the_embeddings(build: Any) -> None:
    config = {
        "architectures": ["Qwen3DSparkModel"],
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "target_layer_ids": [-2, 3],
    }

    with pytest.raises(CheckpointError, match="target_layer_ids is "):
        dialects.read(build(config, {"fc.weight": (8, 16), "layers.0.mlp.up_proj.weight": (8, 8)}))
