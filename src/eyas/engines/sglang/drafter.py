"""Drafter: a draft config as SGLang's two EAGLE-3 classes read it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eyas.checkpoint import Checkpoint
from eyas.engines.capture import USUAL_STATES, expected_count, nested_flag, uses_states
from eyas.engines.config import LLAMA_DEFAULTS, ConfigView
from eyas.engines.latent import LatentSizes, latent_sizes_of
from eyas.engines.rope import rope_of
from eyas.engines.sglang import claims
from eyas.engines.sglang.contract import Contract
from eyas.engines.sizes import Sizes, sizes_of
from eyas.engines.stop import NotCovered, Refused
from eyas.spec import Claim, Fact, Feedback, Rope, Stage, assumed, declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """What the class is built from; `latent` is None for the Llama class."""

    config: ConfigView
    sizes: Sizes
    latent: LatentSizes | None
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
            claims.LATENT_TYPE,
        )

    def construct(message: str) -> Exception:
        return Refused(Stage.CONSTRUCT, message, claims.SIZES)

    def unknown(message: str) -> Exception:
        return NotCovered(f"{message}, and eyas does not know the defaults of {model_type!r}")

    llama = model_type == "llama"
    return ConfigView(
        values=values,
        whose=f"sglang {contract.version}",
        stop=construct if llama else unknown,
        file=checkpoint.config_file,
        defaults=LLAMA_DEFAULTS if llama else {},
    )


def drafter_of(config: ConfigView, contract: Contract) -> Drafter:
    """The drafter of the Llama class; refuses where construction raises."""
    sizes = _sizes(config, contract)
    return Drafter(
        config=config,
        sizes=sizes,
        latent=None,
        count=expected_count(config)
        if contract.counts_states
        else assumed(USUAL_STATES, config.key("num_aux_hidden_states"), whose=config.whose),
        head_from_target=config.get("draft_vocab_size") is None and not config.flag(_TIED).value,
        keeps_embedding=config.has("target_hidden_size")
        and sizes.target_hidden_size.value != sizes.hidden_size.value,
        tied=config.flag(_TIED),
        fc_bias=config.flag("bias"),
        out_bias=config.flag("attention_bias").value or config.flag("bias").value,
        fc_norm=_fc_norm(config, known=contract.fc_norm),
        input_norm=_input_norm(config, contract),
        feedback=_feedback(config, known=contract.norm_output),
        rope=rope_of(config, reads_rope_parameters=contract.rope_parameters),
        uses_states=_uses_states(config, contract),
    )


def latent_drafter_of(config: ConfigView, contract: Contract) -> Drafter:
    """The drafter of the MLA class; refuses where construction raises."""
    if config.get("target_hidden_size") is None:  # null is as good as absent for this class
        config = config.without("target_hidden_size")
    if config.get("q_lora_rank") is None:
        raise Refused(
            Stage.CONSTRUCT,
            f"{config.key('q_lora_rank')} is missing",
            claims.LATENT_CONSTRUCTION,
        )
    vocabulary = "vocab_size" if config.get(_DRAFT_VOCAB) is None else _DRAFT_VOCAB
    sizes = sizes_of(config, draft_vocab_size=config.whole(vocabulary))
    if sizes.num_layers.value != 1:
        raise Refused(
            Stage.CONSTRUCT,
            f"{sizes.num_layers.key} is {sizes.num_layers.value}, and this class builds one layer",
            claims.LATENT_CONSTRUCTION,
        )
    _require_silu(config, claims.LATENT_CONSTRUCTION)
    off = assumed(False, config.key("norm_before_fc"), whose=config.whose)
    tied = config.flag(_TIED)
    return Drafter(
        config=config,
        sizes=sizes,
        latent=latent_sizes_of(config),
        count=_latent_count(config),
        head_from_target=vocabulary == "vocab_size" and not tied.value,
        keeps_embedding=sizes.target_hidden_size.value != sizes.hidden_size.value,
        tied=tied,
        fc_bias=config.flag("bias"),
        out_bias=False,
        fc_norm=_fc_norm(config, known=contract.latent_fc_norm),
        input_norm=off,
        feedback=_feedback(config, known=contract.latent_fc_norm),
        rope=_latent_rope(config),
        uses_states=uses_states(config),
    )


_TIED, _DRAFT_VOCAB = "tie_word_embeddings", "draft_vocab_size"


def _sizes(config: ConfigView, contract: Contract) -> Sizes:
    given = config.get(_DRAFT_VOCAB) is not None
    tied = config.flag(_TIED).value
    if not given and not (tied and not contract.shares_head):
        if not config.has(_DRAFT_VOCAB):
            raise Refused(
                Stage.CONSTRUCT, f"{config.key(_DRAFT_VOCAB)} is missing", claims.DRAFT_VOCAB_SIZE
            )
        if tied:
            raise NotCovered(
                f"{config.key(_DRAFT_VOCAB)} is null and {config.key(_TIED)} is true, and what"
                " SGLang makes of the two together is not read"
            )
        if not contract.shares_head:
            raise Refused(
                Stage.CONSTRUCT,
                f"{config.key(_DRAFT_VOCAB)} is null, and the head needs a number",
                claims.NULL_HEAD,
            )
    sizes = sizes_of(config, draft_vocab_size=config.whole(_DRAFT_VOCAB if given else "vocab_size"))
    if config.get("model_type") == "llama4_text":
        sizes = replace(sizes, intermediate_size=config.whole("intermediate_size_mlp"))
    if sizes.num_layers.value != 1 and not contract.many_layers:
        raise Refused(
            Stage.CONSTRUCT,
            f"{sizes.num_layers.key} is {sizes.num_layers.value}, and this version builds one"
            " layer",
            claims.ONE_LAYER,
        )
    _require_silu(config, claims.ACTIVATION)
    return sizes


def _require_silu(config: ConfigView, claim: Claim) -> None:
    activation = config.text("hidden_act")
    if activation.value != "silu":
        raise Refused(
            Stage.CONSTRUCT,
            f"{activation.key} is {activation.value}, and silu alone is supported",
            claim,
        )


def _latent_count(config: ConfigView) -> Fact[int]:
    """The number of states that fc is sized for: this class looks at the top-level ids too."""
    name = "eagle_aux_hidden_state_layer_ids"
    places = ((f"eagle_config.{name}", config.table("eagle_config").get(name)), (name, None))
    for place, nested in places:
        ids = config.get(name) if place == name else nested
        if ids is None:
            continue
        if not isinstance(ids, list) or not ids:
            raise NotCovered(f"{config.key(place)} is {ids!r} where a list of layer ids is needed")
        return declared(len(ids), config.key(place))
    return assumed(USUAL_STATES, config.key(name), whose=config.whose)


def _latent_rope(config: ConfigView) -> Fact[Rope]:
    rope = rope_of(config, reads_rope_parameters=True)
    if rope.value.kind not in ("default", "yarn", "deepseek_yarn"):
        raise NotCovered(
            f"{rope.key} is of the kind {rope.value.kind}, which SGLang's MLA class computes as"
            " yarn whatever it is called"
        )
    return rope


def _uses_states(config: ConfigView, contract: Contract) -> Fact[bool]:
    if contract.switches_states:
        return uses_states(config)
    return assumed(True, config.key("eagle_config.use_aux_hidden_state"), whose=config.whose)


def _fc_norm(config: ConfigView, *, known: bool) -> Fact[bool]:
    if not known:
        return assumed(False, config.key("fc_norm"), whose=config.whose)
    fc_norm = config.flag("fc_norm")
    return fc_norm if fc_norm.value else config.flag("use_aux_norm")


def _input_norm(config: ConfigView, contract: Contract) -> Fact[bool]:
    fact = nested_flag(config, "norm_before_fc") or config.flag("norm_before_fc")
    if not contract.norm_before_fc:
        return assumed(False, fact.key, whose=config.whose)
    return fact


def _feedback(config: ConfigView, *, known: bool) -> Fact[Feedback]:
    flag = config.flag("norm_output")
    if not known:
        return assumed(Feedback.PRE_NORM, flag.key, whose=config.whose)
    return flag.map(lambda on: Feedback.POST_NORM if on else Feedback.PRE_NORM)
