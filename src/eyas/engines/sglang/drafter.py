"""Drafter: a draft config as SGLang's two EAGLE-3 classes read it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eyas.checkpoint import Checkpoint
from eyas.engines.capture import USUAL_STATES, expected_count, nested_flag, uses_states
from eyas.engines.config import LLAMA_DEFAULTS, ConfigView
from eyas.engines.rope import rope_of
from eyas.engines.sglang import claims, latent_claims
from eyas.engines.sglang.contract import Contract
from eyas.engines.sglang.scaling import require_known, require_parsed
from eyas.engines.sglang.values import require_values
from eyas.engines.sizes import Sizes, sizes_of
from eyas.engines.stop import NotCovered, Refused
from eyas.spec import Claim, Fact, Feedback, Mla, Rope, Stage, assumed

TIED, DRAFT_VOCAB = "tie_word_embeddings", "draft_vocab_size"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """What the class is built from; `latent` is None for the Llama class."""

    config: ConfigView
    sizes: Sizes
    latent: Mla | None
    count: Fact[int]
    head_from_target: bool
    keeps_embedding: bool
    tied: Fact[bool]
    fc_bias: Fact[bool]
    out_bias: bool
    fc_norm: Fact[bool]
    input_norm: Fact[bool]
    feedback: Fact[Feedback]
    rope: Fact[Rope]
    uses_states: Fact[bool]


_LATENT_TYPE = "kimi_k2"  # no transformers knows it; SGLang adds it together with its MLA class


def draft_config(checkpoint: Checkpoint, contract: Contract) -> ConfigView:
    """The config as transformers parses it; refuses one without model_type."""
    values = checkpoint.config
    model_type = values.get("model_type")
    if not isinstance(model_type, str):
        nested = " (its sizes are nested, as speculators writes them)" * (
            "transformer_layer_config" in values
        )
        guess = (
            "; this version's transformers guesses it from the directory's name where that"
            " contains one"
        ) * contract.guesses_model_type
        raise Refused(
            Stage.CONFIG,
            f"{checkpoint.config_file} has no model_type{nested}{guess}",
            claims.MODEL_TYPE,
        )

    if model_type == _LATENT_TYPE and not contract.latent:
        raise Refused(
            Stage.CONFIG,
            f"{checkpoint.config_file} :: model_type is {model_type}, which transformers does not"
            " know",
            latent_claims.TYPE,
        )

    def construct(message: str) -> Exception:
        return Refused(Stage.CONSTRUCT, message, claims.SIZES)

    def unknown(message: str) -> Exception:
        return NotCovered(f"{message}, and eyas does not know the defaults of {model_type!r}")

    llama = model_type == "llama"
    config = ConfigView(
        values=values,
        whose=f"sglang {contract.version}",
        stop=construct if llama else unknown,
        file=checkpoint.config_file,
        defaults=LLAMA_DEFAULTS if llama else {},
    )
    if llama:
        require_values(config, contract)
        require_parsed(config, contract)
    return config


def drafter_of(config: ConfigView, contract: Contract) -> Drafter:
    """The drafter of the Llama class; refuses where construction raises."""
    sizes = _sizes(config, contract)
    _require_table(config, contract)
    return Drafter(
        config=config,
        sizes=sizes,
        latent=None,
        count=expected_count(config)
        if contract.counts_states
        else assumed(USUAL_STATES, config.key("num_aux_hidden_states"), whose=config.whose),
        head_from_target=config.get("draft_vocab_size") is None and not config.flag(TIED).value,
        keeps_embedding=config.has("target_hidden_size")
        and sizes.target_hidden_size.value != sizes.hidden_size.value,
        tied=config.flag(TIED),
        fc_bias=config.flag("bias"),
        out_bias=config.flag("attention_bias").value or config.flag("bias").value,
        fc_norm=fc_norm_of(config, known=contract.fc_norm),
        input_norm=_input_norm(config, contract),
        feedback=feedback_of(config, known=contract.norm_output),
        rope=_rope(config, contract),
        uses_states=_uses_states(config, contract),
    )


def _sizes(config: ConfigView, contract: Contract) -> Sizes:
    given = config.get(DRAFT_VOCAB) is not None
    tied = config.flag(TIED).value
    if not given and not (tied and not contract.shares_head):
        if not config.has(DRAFT_VOCAB):
            raise Refused(
                Stage.CONSTRUCT, f"{config.key(DRAFT_VOCAB)} is missing", claims.DRAFT_VOCAB_SIZE
            )
        if tied:
            raise NotCovered(
                f"{config.key(DRAFT_VOCAB)} is null and {config.key(TIED)} is true, and what"
                " SGLang makes of the two together is not read"
            )
        if not contract.shares_head:
            raise Refused(
                Stage.CONSTRUCT,
                f"{config.key(DRAFT_VOCAB)} is null, and the head needs a number",
                claims.NULL_HEAD,
            )
    sizes = sizes_of(config, draft_vocab_size=config.whole(DRAFT_VOCAB if given else "vocab_size"))
    if config.get("model_type") == "llama4_text":
        sizes = replace(sizes, intermediate_size=config.whole("intermediate_size_mlp"))
    if sizes.num_layers.value != 1 and not contract.many_layers:
        raise Refused(
            Stage.CONSTRUCT,
            f"{sizes.num_layers.key} is {sizes.num_layers.value}, and this version builds one"
            " layer",
            claims.ONE_LAYER,
        )
    require_positive(sizes)
    require_silu(config, claims.ACTIVATION)
    return sizes


def _require_table(config: ConfigView, contract: Contract) -> None:
    """Refuse an eagle_config that is no table, where the class looks into it."""
    given = config.get("eagle_config")
    looks = contract.norm_before_fc or (
        contract.counts_states and config.get("num_aux_hidden_states") is None
    )
    if given and not isinstance(given, dict) and looks:
        raise Refused(
            Stage.CONSTRUCT,
            f"{config.key('eagle_config')} is {given!r} where a table is needed",
            claims.EAGLE_TABLE,
        )


def require_positive(sizes: Sizes, *, grouped: bool = True) -> None:
    """Refuse a size of 0 where construction divides by it; NotCovered where it goes on."""
    if grouped:
        for fact in (sizes.num_kv_heads, sizes.head_dim):
            if not fact.value:
                raise Refused(
                    Stage.CONSTRUCT, f"{fact.key} is 0, and is divided by", claims.DIVISORS
                )
    if not sizes.intermediate_size.value:
        raise NotCovered(
            f"{sizes.intermediate_size.key} is 0, and what SGLang makes of layers without rows is"
            " not read"
        )


def require_silu(config: ConfigView, claim: Claim) -> None:
    """Refuse another activation, as the feed-forward block of every class does."""
    activation = config.text("hidden_act")
    if activation.value != "silu":
        raise Refused(
            Stage.CONSTRUCT,
            f"{activation.key} is {activation.value}, and silu alone is supported",
            claim,
        )


def _rope(config: ConfigView, contract: Contract) -> Fact[Rope]:
    """The rotary embedding of the Llama class; NotCovered for what no DraftSpec can say of it."""
    require_known(config, contract)
    rope = rope_of(config, reads_rope_parameters=contract.rope_parameters)
    unsaid = {"partial_rotary_factor": 1, "rope_is_neox_style": True}  # and what they are if absent
    for name, usual in unsaid.items():
        value = config.get(name)
        if value is None:
            value = rope.value.scaling.get(name, usual)
        if value != usual:
            raise NotCovered(
                f"{config.key(name)} is {value!r}, which SGLang reads (llama.py) and eyas does not"
                " compute"
            )
    if contract.sections_are_default and "mrope_section" in rope.value.scaling:
        return rope.map(lambda found: replace(found, kind="default"))
    return rope


def _uses_states(config: ConfigView, contract: Contract) -> Fact[bool]:
    if contract.switches_states:
        return uses_states(config)
    return assumed(True, config.key("eagle_config.use_aux_hidden_state"), whose=config.whose)


def fc_norm_of(config: ConfigView, *, known: bool) -> Fact[bool]:
    """Whether each captured state is normed before fc; off where the version does not know it."""
    if not known:
        return assumed(False, config.key("fc_norm"), whose=config.whose)
    fc_norm = config.flag("fc_norm")
    return fc_norm if fc_norm.value else config.flag("use_aux_norm")


def _input_norm(config: ConfigView, contract: Contract) -> Fact[bool]:
    fact = nested_flag(config, "norm_before_fc") or config.flag("norm_before_fc")
    if not contract.norm_before_fc:
        return assumed(False, fact.key, whose=config.whose)
    return fact


def feedback_of(config: ConfigView, *, known: bool) -> Fact[Feedback]:
    """Which state is fed back; the one before the norm where the version knows no other."""
    flag = config.flag("norm_output")
    if not known:
        return assumed(Feedback.PRE_NORM, flag.key, whose=config.whose)
    return flag.map(lambda on: Feedback.POST_NORM if on else Feedback.PRE_NORM)
