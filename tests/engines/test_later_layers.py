"""Which norm a decoder layer after the first calls, as written, and as each engine reads it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engines.drafters import HEADS, INNER, KV, D, H, drafter, flat_config, shapes, target

from eyas import dialects
from eyas.checkpoint import Checkpoint
from eyas.checks import compare_view
from eyas.checks.compare import as_trained
from eyas.checks.view import View
from eyas.engines import EngineRef, Launch, read
from eyas.spec import Eagle3Spec, LaterNorm, Origin, Served

ENGINES = {
    "sglang@0.5.23": LaterNorm.HIDDEN_NORM,
    "vllm@0.32.0:v1": LaterNorm.INPUT_LAYERNORM,
}


def two_layers(*norms: str) -> Checkpoint:
    second = {
        "self_attn.q_proj": (HEADS * D, H),
        "self_attn.k_proj": (KV * D, H),
        "self_attn.v_proj": (KV * D, H),
        "self_attn.o_proj": (H, HEADS * D),
        "mlp.gate_proj": (INNER, H),
        "mlp.up_proj": (INNER, H),
        "mlp.down_proj": (H, INNER),
        "post_attention_layernorm": (H,),
        **dict.fromkeys(norms, (H,)),
    }
    tensors = shapes("layers.0") | {f"layers.1.{n}.weight": s for n, s in second.items()}
    return drafter(flat_config(num_hidden_layers=2), tensors)


def trained(checkpoint: Checkpoint) -> Any:
    spec = dialects.read(checkpoint)[1]
    assert isinstance(spec, Eagle3Spec)
    return spec.later_norm


def served(engine: str, checkpoint: Checkpoint) -> Served:
    method = ["method=eagle3"] if engine.startswith("vllm") else []
    ref, launch = EngineRef.parse(engine), Launch.parse(method)
    result = read(ref, checkpoint, target=target(), launch=launch)
    assert isinstance(result, Served)
    return result


@pytest.mark.parametrize("norm", list(LaterNorm))
def test_the_stored_norm_is_the_one_that_was_trained(norm: LaterNorm) -> None:
    fact = trained(two_layers(norm))
    assert (fact.value, fact.origin) == (norm, Origin.INFERRED)
    assert fact.key.endswith(f"layers.1.{norm}.weight")


def test_where_neither_or_both_are_stored() -> None:
    neither = trained(two_layers())
    assert (neither.value, neither.origin) == (LaterNorm.INPUT_LAYERNORM, Origin.ASSUMED)
    assert trained(two_layers(*LaterNorm)).value is LaterNorm.INPUT_LAYERNORM


def test_one_layer_has_none() -> None:
    checkpoint = drafter(flat_config(), shapes())
    assert trained(checkpoint).value is None
    for engine in ENGINES:
        assert served(engine, checkpoint).spec.later_norm.value is None  # type: ignore[union-attr]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("norm", list(LaterNorm))
def test_an_engine_calls_its_own(engine: str, norm: LaterNorm) -> None:
    checkpoint = two_layers(norm)
    result = served(engine, checkpoint)
    assert result.spec.later_norm.value is ENGINES[engine]  # type: ignore[union-attr]
    assert result.landing is not None
    filled = {s.role for p in result.landing.parameters for s in p.segments if p.tensors}
    right = norm is ENGINES[engine]
    assert (f"layers.1.{ENGINES[engine]}.weight" in filled) == right

    findings, _ = compare_view(View(trained=as_trained(checkpoint, target=None), served=result))
    assert ("N504" in {finding.code for finding in findings}) != right
