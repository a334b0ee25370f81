"""Drafter: a parsed draft config as the class that vLLM builds for it reads it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eyas.checkpoint import TargetFacts
from eyas.engines.capture import expected_count, nested_flag, uses_states
from eyas.engines.config import ConfigView
from eyas.engines.latent import latent_sizes_of
from eyas.engines.launch import Settings
from eyas.engines.rope import rope_of
from eyas.engines.sizes import Sizes, sizes_of
from eyas.engines.stop import NotCovered, Refused
from eyas.engines.vllm import claims
from eyas.engines.vllm.architecture import DraftClass
from eyas.engines.vllm.boundaries import configured_ids
from eyas.engines.vllm.config import DraftConfig
from eyas.engines.vllm.launch import drafts_in_parallel
from eyas.engines.vllm.needs import require_needed
from eyas.spec import Fact, Feedback, Mla, Rope, Stage, assumed, declared

_QWEN3_THETA = 1000000.0
_MASK_TOKENS = ("mask_token_id", "dspark_noise_token_id", "pard_token", "ptd_token_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """What the class is built from.

    `latent` is there where its attention is latent; `maps_ids` says whether there is a map of
    draft ids, `in_parallel` whether all draft tokens come from one pass (P-EAGLE).
    """

    config: ConfigView
    built: DraftClass
    sizes: Sizes
    latent: Mla | None
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
    has_fc: Fact[bool]
    slides: Fact[bool]
    maps_ids: bool
    in_parallel: bool


def drafter_of(
    parsed: DraftConfig, target: TargetFacts | None, settings: Settings, method: str
) -> Drafter:
    """The drafter that a config describes; refuses where construction raises."""
    config, built = parsed.view, parsed.built
    if built is DraftClass.DFLASH and config.get("target_hidden_size") is None:
        # This class takes a null width for an absent one (qwen3_dflash.py 110-112).
        config = config.without("target_hidden_size")
    latent = _latent(config) if built is DraftClass.DEEPSEEK else None
    name = "draft_vocab_size"
    given = config.get(name) is not None
    draft_vocab = config.whole(name if given else "vocab_size")
    sizes = sizes_of(config, draft_vocab_size=draft_vocab)
    _require_silu(config)
    require_needed(config, built, nested=parsed.nested)
    llama = built in (DraftClass.LLAMA, DraftClass.EAGLE1)
    qkv_bias, out_bias = _biases(config, built)
    # The map is built against the target's own vocabulary (llama_eagle3.py 338-345).
    target_vocab = sizes.vocab_size.value
    if target is not None and target.vocab_size is not None:
        target_vocab = target.vocab_size
    uses = uses_states(config)
    never = assumed(False, config.key("architectures"), whose=config.whose)
    drafter = Drafter(
        config=config,
        built=built,
        sizes=sizes,
        latent=latent,
        count=_count(config, built),
        qkv_bias=qkv_bias,
        out_bias=out_bias,
        mlp_bias=llama and config.flag("mlp_bias").value,
        fc_norm=config.flag("fc_norm"),
        input_norm=never if latent else _input_norm(config),
        norm_before_residual=config.flag(
            "norm_before_residual", bool(config.defaults.get("norm_before_residual", False))
        ),
        feedback=config.flag("norm_output").map(
            lambda on: Feedback.POST_NORM if on else Feedback.PRE_NORM
        ),
        rope=_rope(config, built),
        uses_states=uses,
        # The DeepSeek class has an fc whatever eagle_config says (deepseek_eagle3.py 188-209).
        has_fc=uses.map(lambda on: on or built in (DraftClass.DEEPSEEK, DraftClass.DFLASH)),
        slides=_slides(config, sizes.num_layers.value, latent=latent is not None),
        maps_ids=draft_vocab.value != target_vocab,
        in_parallel=drafts_in_parallel(settings, config, method),
    )
    if built is DraftClass.DFLASH:
        _require_mask_token(config)
    elif drafter.in_parallel:
        _require_parallel(drafter)
    return drafter


def _biases(config: ConfigView, built: DraftClass) -> tuple[Fact[bool], bool]:
    """Whether q, k and v have biases, and whether the output projection has one."""
    attention, plain = config.flag("attention_bias"), config.flag("bias")
    either = plain if plain.value and not attention.value else attention
    if built is DraftClass.LLAMA:  # its own qkv_proj reads attention_bias alone
        return attention, either.value
    if built is DraftClass.EAGLE1:
        return config.flag("qkv_bias") if config.has("qkv_bias") else either, either.value
    return attention, attention.value and built is DraftClass.DFLASH


def _count(config: ConfigView, built: DraftClass) -> Fact[int]:
    """The states that fc is sized for; the Qwen3 class reads two places more than the others."""
    name, top = "num_aux_layers", "eagle_aux_hidden_state_layer_ids"
    if built is DraftClass.DFLASH:
        found = configured_ids(config, "v2")
        return (
            config.whole("num_hidden_layers")
            if found is None
            else declared(len(found[0]), found[1])
        )
    if built is not DraftClass.QWEN3:
        return expected_count(config)
    if config.get(name) is not None:
        return config.whole(name)
    ids = config.ids(top)
    if config.get("num_aux_hidden_states") is None and ids:
        return declared(len(ids), config.key(top))
    return expected_count(config)


def _latent(config: ConfigView) -> Mla:
    if config.has("q_lora_rank") and config.get("q_lora_rank") is None:
        raise Refused(
            Stage.LOAD,
            f"{config.key('q_lora_rank')} is null, and kv_a_proj_with_mqa is renamed to a"
            " parameter that is only there with a q_lora_rank",
            claims.LATENT,
        )
    if config.has("index_topk"):
        raise NotCovered(
            f"{config.key('index_topk')} is there, and eyas does not read sparse attention"
        )
    return latent_sizes_of(config)


def _input_norm(config: ConfigView) -> Fact[bool]:
    return nested_flag(config, "norm_before_fc") or config.flag("norm_before_fc")


def _rope(config: ConfigView, built: DraftClass) -> Fact[Rope]:
    # The Qwen3 layer fills in its own theta where there is none (qwen3.py 188), as in a parsed
    # speculators config; a flat one has transformers' 10000 by then.
    nested = "norm_before_residual" in config.defaults
    own = built in (DraftClass.QWEN3, DraftClass.DFLASH)
    theta = _QWEN3_THETA if own and nested else None
    if nested and config.get("rope_parameters"):
        # No config class takes the older name for the newer one.
        config = config.without("rope_scaling")
    rope = rope_of(config, reads_rope_parameters=True, default_theta=theta)
    if built is DraftClass.DEEPSEEK and rope.value.kind not in ("default", "yarn"):
        # Latent attention takes every scaled RoPE for DeepSeek's yarn (deepseek_v2.py 1115-1120).
        return rope.map(lambda other: replace(other, kind="deepseek_yarn"))
    return rope


def _require_silu(config: ConfigView) -> None:
    activation = config.text("hidden_act")
    if activation.value != "silu":
        raise Refused(
            Stage.CONSTRUCT,
            f"{activation.key} is {activation.value}, and the feed-forward part takes silu alone",
            claims.ACTIVATION,
        )


def _require_parallel(drafter: Drafter) -> None:
    """Refuse where parallel drafting raises before a weight is read."""
    config = drafter.config
    if drafter.built is DraftClass.LLAMA and not drafter.uses_states.value:
        raise Refused(
            Stage.CONSTRUCT,
            f"{drafter.uses_states.key} is false, and parallel drafting needs the width of fc",
            claims.PARALLEL,
        )
    _require_mask_token(config)


def _require_mask_token(config: ConfigView) -> None:
    """Refuse a drafter of masked slots without a token for them."""
    nested = config.table("dflash_config")
    named = "mask_token_id" in nested or config.get(_MASK_TOKENS[0]) is not None
    if not named and not any(config.has(name) for name in _MASK_TOKENS[1:]):
        raise Refused(
            Stage.CONSTRUCT,
            f"{config.key('mask_token_id')} is missing, and so are pard_token and ptd_token_id:"
            " parallel drafting has no token for its masked slots",
            claims.MASK_TOKEN,
        )


def _slides(config: ConfigView, layers: int, *, latent: bool) -> Fact[bool]:
    """Whether one of the layers slides; layer_types counts the drafter's own layers from 0."""
    name = "layer_types"
    types = config.get(name)
    if latent or not isinstance(types, list) or not types:
        return assumed(False, config.key(name), whose=config.whose)
    return declared("sliding_attention" in types[:layers], config.key(name))
