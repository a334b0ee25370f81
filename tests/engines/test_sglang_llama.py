"""EAGLE-3 checkpoints whose `architectures` makes SGLang build another Llama class."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engines.drafters import HEADS, INNER, KV, D, H, Shapes, V, flat_config, shapes
from tests.engines.sglang import served

from eyas.spec import Fate, Initialisation, Recognised, Stage, Unfilled

NEW = "0.5.23"
EAGLE = "speculative_algorithm=EAGLE"


def plain(**changes: Any) -> dict[str, Any]:
    return flat_config(**{"architectures": ["LlamaForCausalLM"], "draft_vocab_size": V, **changes})


def full(layer: str = "midlayer", prefix: str = "") -> dict[str, tuple[int, ...]]:
    tensors = shapes(layer, prefix) | {"lm_head.weight": (V, H)}
    return {name: shape for name, shape in tensors.items() if name not in ("d2t", "t2d")}


def llama() -> dict[str, tuple[int, ...]]:
    """The tensors of an ordinary Llama of one layer."""
    tensors = full("layers.0", "model.") | {
        f"model.layers.0.self_attn.{name}_proj.weight": (rows, H)
        for name, rows in (("q", HEADS * D), ("k", KV * D), ("v", KV * D))
    }
    return {n: s for n, s in tensors.items() if "hidden_norm" not in n and "fc" not in n}


@pytest.mark.parametrize("version", ["0.5.4.post3", "0.5.11", NEW])
@pytest.mark.parametrize("layer", ["midlayer", "layers.0"])
def test_a_plain_llama_keeps_the_head_alone(version: str, layer: str) -> None:
    result = served(version, plain(), full(layer))
    assert isinstance(result.spec, Recognised)
    assert {t.name for t in result.landing.lost} == {*full(layer)} - {"lm_head.weight"}
    assert [p.name for p in result.landing.parameters if p.tensors] == ["lm_head.weight"]
    assert result.landing.imbalance() == ()
    assert result.refusal.stage is Stage.JOIN
    assert "hot_token_id" in result.refusal.message


@pytest.mark.parametrize(("version", "stage"), [("0.4.9", Stage.LOAD), ("0.4.10", Stage.JOIN)])
def test_a_part_of_an_unknown_layer_raises_in_0_4_9(version: str, stage: Stage) -> None:
    assert served(version, plain(), full()).refusal.stage is stage


def test_an_ordinary_llama_is_filled() -> None:
    landing = served(NEW, plain(), llama()).landing
    assert landing.lost == ()
    assert [p.name for p in landing.parameters if not p.tensors] == ["model.embed_tokens.weight"]


def test_a_reduced_head_does_not_fit_a_plain_llama() -> None:
    tensors = full() | {"lm_head.weight": (V // 2, H)}
    assert served(NEW, plain(draft_vocab_size=V // 2), tensors).refusal.stage is Stage.LOAD


def test_launched_as_eagle_a_plain_llama_starts_with_the_targets_embedding_and_head() -> None:
    result = served(NEW, plain(), full(), EAGLE)
    assert result.refusal is None
    replaced = {p.name for p in result.landing.parameters if p.replaced}
    assert replaced == {"model.embed_tokens.weight", "lm_head.weight"}
    assert served(NEW, plain(), full(), EAGLE, hidden=2 * H).refusal.stage is Stage.FIRST_REQUEST
    tied = plain(tie_word_embeddings=True)
    assert served(NEW, tied, full(), EAGLE).refusal.stage is Stage.JOIN


@pytest.mark.parametrize(
    ("version", "held"),
    [("0.5.8", Initialisation.MEMORY), ("0.5.9", Initialisation.ZEROS)],
)
def test_a_bias_that_nothing_fills(version: str, held: Initialisation) -> None:
    landing = served(version, plain(attention_bias=True), llama()).landing
    left = {p.name: p.segments[0].source for p in landing.unfilled}
    assert left == {
        f"model.layers.0.self_attn.{name}_proj.bias": Unfilled(initialisation=held)
        for name in ("qkv", "o")
    }


@pytest.mark.parametrize(
    ("name", "logged"),
    [
        ("model.layers.7.mlp.down_proj.weight", False),  # there is one layer
        ("model.layers.0.mlp.down_proj.bias", False),
        ("model.layers.0.mlp.down_proj.weight_scale", False),
        ("model.projector.weight", False),
        ("model.other.weight", True),
        ("d2t", True),
    ],
)
def test_what_a_plain_llama_says_of_a_name_it_does_not_know(name: str, logged: bool) -> None:
    landing = served(NEW, plain(), llama() | {name: (INNER,)}).landing
    assert [t.name for t in landing.lost] == [name]
    assert bool(landing.log) is logged


def eagle() -> dict[str, tuple[int, ...]]:
    """The tensors of an EAGLE-2 head."""
    head = {name.removeprefix("model."): shape for name, shape in llama().items()}
    kept = ("input_layernorm", "lm_head")
    head = {n: s for n, s in head.items() if n != "norm.weight" and not any(k in n for k in kept)}
    return head | {"fc.weight": (H, 2 * H), "fc.bias": (H,)}


def eagle_config(**changes: Any) -> dict[str, Any]:
    return plain(architectures=["LlamaForCausalLMEagle"], **changes)


def test_an_eagle_2_head_is_filled() -> None:
    result = served(NEW, eagle_config(), eagle(), EAGLE)
    assert result.refusal is None
    assert result.landing.lost == result.landing.unfilled == ()
    assert isinstance(result.spec, Recognised)


@pytest.mark.parametrize(
    ("tensors", "stage"),
    [
        (full(), Stage.LOAD),  # its fc takes three states
        ({n: s for n, s in full().items() if n != "fc.weight"}, Stage.JOIN),
        (eagle(), Stage.JOIN),
    ],
)
def test_eagle_3_refuses_the_class_of_eagle_2(tensors: Shapes, stage: Stage) -> None:
    assert served(NEW, eagle_config(), tensors).refusal.stage is stage


def test_the_class_of_eagle_2_never_loads_a_head() -> None:
    tensors = eagle() | {"lm_head.weight": (V, H), "model.fc.weight": (H, 2 * H)}
    landing = served(NEW, eagle_config(), tensors, EAGLE).landing
    assert {t.name for t in landing.lost} == {"lm_head.weight", "model.fc.weight"}
    assert landing.log == ("Parameter model.model.fc.weight not found in params_dict",)


def test_the_mask_is_left_out_by_design() -> None:
    landing = served(NEW, plain(), llama() | {"t2d": (V,)}).landing
    assert next(t.fate for t in landing.tensors if t.name == "t2d") is Fate.IGNORED
