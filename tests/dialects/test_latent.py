"""Drafters with latent attention (MLA): what is written of them, engines serve as trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import eyas
from eyas import dialects
from eyas.checkpoint import open_checkpoint, write_sparse
from eyas.checks import Severity
from eyas.errors import ConversionError
from eyas.spec import (
    Eagle3Spec,
    Feedback,
    Fused,
    Mla,
    Ownership,
    Rope,
    VocabMap,
    absent,
    declared,
)

YARN = Rope(
    theta=50000.0,
    kind="yarn",
    scaling={
        "beta_fast": 1.0,
        "beta_slow": 1.0,
        "factor": 64.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 4096,
    },
)


def latent(
    boundaries: tuple[int, ...] = (2, 30, 58),
    *,
    newer: bool = False,
    embedding: Ownership = Ownership.OWN,
) -> Eagle3Spec:
    """A drafter like Kimi-K2.5's, and like Kimi-K2.6's 3.1 where `newer`."""

    def known(value: Any) -> Any:
        return declared(value, "test")

    return Eagle3Spec(
        hidden_size=known(64),
        target_hidden_size=known(64),
        intermediate_size=known(96),
        num_layers=known(1),
        later_norm=absent("test"),
        attention=Mla(
            num_heads=known(4),
            q_lora_rank=known(16),
            kv_lora_rank=known(8),
            qk_nope_head_dim=known(16),
            qk_rope_head_dim=known(8),
            v_head_dim=known(16),
        ),
        conditioning=Fused(
            boundaries=known(boundaries),
            count=known(3),
            input_norm=known(False),
            fc_norm=known(newer),
            bias=known(False),
        ),
        activation=known("silu"),
        rms_norm_eps=known(1e-5),
        rope=known(YARN),
        max_position_embeddings=known(4096),
        norm_before_residual=known(False),
        feedback=known(Feedback.POST_NORM if newer else Feedback.PRE_NORM),
        vocab_size=known(128),
        draft_vocab_size=known(128),
        vocab_map=known(VocabMap.IDENTITY),
        vocab_order=absent("test"),
        embedding=known(embedding),
        head=known(Ownership.OWN),
        target_name=absent("test"),
    )


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("target")
    config = {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        "hidden_size": 64,
        "num_hidden_layers": 61,
        "num_attention_heads": 4,
        "vocab_size": 128,
        "max_position_embeddings": 4096,
    }
    (place / "config.json").write_text(json.dumps(config))
    return place


def against(
    kit: Any, place: Path, spec: Eagle3Spec, way: tuple[str, Any], **asked: Any
) -> list[str]:
    """What a check finds against `spec`, written in a way."""
    name, choices = way
    headers = kit.headers_of(spec)
    config, names = dialects.WRITABLE[name].write(spec, headers, dtype="bfloat16", **choices)
    write_sparse(place, config, {names[role]: header for role, header in headers.items()})
    assert dialects.recognise(open_checkpoint(place)).name == name
    report = eyas.check(place, **asked)
    assert report.judged
    return [f.message for f in report.findings if f.severity is not Severity.INFO]


NATIVE, EXPORTED = ("torchspec", {}), ("torchspec", {"layer_prefix": "layers.0."})
NESTED, REPACKED = ("specforge", {}), ("specforge", {"layer_prefix": "layers.0."})
TOP = ("specforge", {"ids": "top"})
USUAL, OTHER = (2, 30, 58), (3, 31, 59)  # the first are what engines capture by default
SERVED = [
    *(("sglang@0.5.23", way, USUAL) for way in (NATIVE, EXPORTED, NESTED, REPACKED)),
    *(("vllm@0.33.0:v2", way, USUAL) for way in (NATIVE, EXPORTED, NESTED, REPACKED)),
    # This runner takes nested ids for boundaries, which is why TorchSpec shifts them for it.
    ("vllm@0.33.0:v1", EXPORTED, USUAL),
    ("vllm@0.33.0:v1", EXPORTED, OTHER),
    ("vllm@0.33.0:v2", TOP, OTHER),
    ("sglang@0.5.23", EXPORTED, OTHER),
]


@pytest.mark.parametrize(("engine", "way", "boundaries"), SERVED)
@pytest.mark.parametrize("newer", [False, True])
def test_engines_serve_it_as_trained(
    kit: Any,
    tmp_path: Path,
    target: Path,
    engine: str,
    way: Any,
    boundaries: tuple[int, ...],
    newer: bool,
) -> None:
    spec = latent(boundaries, newer=newer)

    assert against(kit, tmp_path / "d", spec, way, engines=engine, target=target) == []


def test_modelopt_leaves_the_embedding_to_the_target(
    kit: Any, tmp_path: Path, target: Path
) -> None:
    spec = latent(embedding=Ownership.TARGET)

    found = against(
        kit, tmp_path / "d", spec, ("modelopt", {}), engines="sglang@0.5.23", target=target
    )

    assert found == []
    with pytest.raises(ConversionError, match="that the embedding is the drafter's own"):
        dialects.WRITABLE["modelopt"].write(latent(), kit.headers_of(latent()))


@pytest.mark.parametrize(
    ("boundaries", "midlayer", "layers"),
    [((2, 30, 58), [1, 29, 57], [2, 30, 58]), ((3, 31, 59), [2, 30, 58], [3, 31, 59])],
)
def test_torchspec_shifts_the_ids_for_vllm_alone(
    kit: Any, boundaries: tuple[int, ...], midlayer: list[int], layers: list[int]
) -> None:
    spec, torchspec = latent(boundaries), dialects.WRITABLE["torchspec"]
    headers = kit.headers_of(spec)

    native, _ = torchspec.write(spec, headers)
    exported, _ = torchspec.write(spec, headers, layer_prefix="layers.0.")  # type: ignore[call-arg]

    key = "eagle_aux_hidden_state_layer_ids"
    assert native["eagle_config"][key] == midlayer
    assert exported["eagle_config"][key] == layers


def test_ids_that_would_read_as_never_shifted_are_refused(kit: Any) -> None:
    spec = latent((1, 30, 58))

    with pytest.raises(ConversionError, match="torchspec cannot state boundary 1 over layers"):
        dialects.WRITABLE["torchspec"].write(
            spec,
            kit.headers_of(spec),
            layer_prefix="layers.0.",  # type: ignore[call-arg]
        )
