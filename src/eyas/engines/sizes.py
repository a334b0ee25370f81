"""Sizes: the dimensions of a Llama-type drafter as an engine's config reader has them."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.engines.config import ConfigView
from eyas.spec import Fact, assumed


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Dimensions, each with its source. `draft_vocab_size` counts the head's rows."""

    hidden_size: Fact[int]
    target_hidden_size: Fact[int]
    intermediate_size: Fact[int]
    num_layers: Fact[int]
    num_heads: Fact[int]
    num_kv_heads: Fact[int]
    head_dim: Fact[int]
    vocab_size: Fact[int]
    draft_vocab_size: Fact[int]


def sizes_of(config: ConfigView, *, draft_vocab_size: Fact[int]) -> Sizes:
    """The dimensions that `config` gives; its `stop` is raised for one that cannot be had."""
    hidden = config.whole("hidden_size")
    heads = config.whole("num_attention_heads")
    if not hidden.value or not heads.value:
        raise config.stop(f"{config.key('hidden_size')} and num_attention_heads must not be 0")
    return Sizes(
        hidden_size=hidden,
        target_hidden_size=_target_hidden_size(config, hidden),
        intermediate_size=config.whole("intermediate_size"),
        num_layers=config.whole("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=config.whole("num_key_value_heads", heads.value),
        head_dim=config.whole("head_dim", hidden.value // heads.value),
        vocab_size=config.whole("vocab_size"),
        draft_vocab_size=draft_vocab_size,
    )


def _target_hidden_size(config: ConfigView, hidden: Fact[int]) -> Fact[int]:
    name = "target_hidden_size"
    if not config.has(name):
        return assumed(hidden.value, config.key(name), whose=config.whose)
    if config.get(name) is None:
        # Both engines ask only whether the key is there, then multiply None by the count.
        raise config.stop(f"{config.key(name)} is null, and its multiple is needed for fc")
    return config.whole(name)
