"""Drafter: a parsed draft config as vLLM's EAGLE-3 Llama class reads it."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.checkpoint import TargetFacts
from eyas.engines.capture import expected_count, nested_flag, uses_states
from eyas.engines.config import ConfigView
from eyas.engines.rope import rope_of
from eyas.engines.sizes import Sizes, sizes_of
from eyas.spec import Fact, Feedback, Rope, assumed, declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """What the class is built from. `maps_ids` says whether there is a map of draft ids."""

    config: ConfigView
    sizes: Sizes
    count: Fact[int]
    qkv_bias: Fact[bool]
    out_bias: bool
    mlp_bias: bool
    fc_norm: Fact[bool]
    input_norm: Fact[bool]
    norm_before_residual: Fact[bool]
    feedback: Fact[Feedback]
    rope: Fact[Rope]
    uses_states: Fact[bool]
    slides: Fact[bool]
    maps_ids: bool


def drafter_of(config: ConfigView, target: TargetFacts | None) -> Drafter:
    """The drafter that `config` describes; refuses where construction raises."""
    name = "draft_vocab_size"
    given = config.get(name) is not None
    draft_vocab = config.whole(name if given else "vocab_size")
    sizes = sizes_of(config, draft_vocab_size=draft_vocab)
    qkv_bias = config.flag("attention_bias")
    # The map is built against the target's own vocabulary (llama_eagle3.py 338-345).
    target_vocab = sizes.vocab_size.value
    if target is not None and target.vocab_size is not None:
        target_vocab = target.vocab_size
    return Drafter(
        config=config,
        sizes=sizes,
        count=expected_count(config),
        qkv_bias=qkv_bias,
        out_bias=qkv_bias.value or config.flag("bias").value,
        mlp_bias=config.flag("mlp_bias").value,
        fc_norm=config.flag("fc_norm"),
        input_norm=nested_flag(config, "norm_before_fc") or config.flag("norm_before_fc"),
        norm_before_residual=config.flag(
            "norm_before_residual", bool(config.defaults.get("norm_before_residual", False))
        ),
        feedback=config.flag("norm_output").map(
            lambda on: Feedback.POST_NORM if on else Feedback.PRE_NORM
        ),
        rope=rope_of(config, reads_rope_parameters=True),
        uses_states=uses_states(config),
        slides=_slides(config, sizes.num_layers.value),
        maps_ids=draft_vocab.value != target_vocab,
    )


def _slides(config: ConfigView, layers: int) -> Fact[bool]:
    """Whether one of the layers slides; layer_types counts the drafter's own layers from 0."""
    name = "layer_types"
    types = config.get(name)
    if not isinstance(types, list) or not types:
        return assumed(False, config.key(name), whose=config.whose)
    return declared("sliding_attention" in types[:layers], config.key(name))
