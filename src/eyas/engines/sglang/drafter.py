"""Drafter: a draft config as SGLang's EAGLE-3 Llama class reads it."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.checkpoint import Checkpoint
from eyas.engines.capture import USUAL_STATES, expected_count, nested_flag, uses_states
from eyas.engines.config import LLAMA_DEFAULTS, ConfigView
from eyas.engines.rope import rope_of
from eyas.engines.sglang import claims
from eyas.engines.sglang.contract import Contract
from eyas.engines.sizes import Sizes, sizes_of
from eyas.engines.stop import NotCovered, Refused
from eyas.spec import Fact, Feedback, Rope, Stage, assumed


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """What the class is built from."""

    config: ConfigView
    sizes: Sizes
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
    """The drafter that `config` describes; refuses where construction raises."""
    sizes = _sizes(config, contract)
    return Drafter(
        config=config,
        sizes=sizes,
        count=expected_count(config)
        if contract.counts_states
        else assumed(USUAL_STATES, config.key("num_aux_hidden_states"), whose=config.whose),
        head_from_target=config.get("draft_vocab_size") is None,
        keeps_embedding=config.has("target_hidden_size")
        and sizes.target_hidden_size.value != sizes.hidden_size.value,
        tied=config.flag("tie_word_embeddings"),
        fc_bias=config.flag("bias"),
        out_bias=config.flag("attention_bias").value or config.flag("bias").value,
        fc_norm=_fc_norm(config, contract),
        input_norm=_input_norm(config, contract),
        feedback=_feedback(config, contract),
        rope=rope_of(config, reads_rope_parameters=contract.rope_parameters),
        uses_states=uses_states(config),
    )


def _sizes(config: ConfigView, contract: Contract) -> Sizes:
    name = "draft_vocab_size"
    if not config.has(name):
        raise Refused(Stage.CONSTRUCT, f"{config.key(name)} is missing", claims.DRAFT_VOCAB_SIZE)
    if config.get(name) is None:
        draft_vocab = config.whole("vocab_size")
    else:
        draft_vocab = config.whole(name)
    sizes = sizes_of(config, draft_vocab_size=draft_vocab)
    if sizes.num_layers.value != 1 and not contract.many_layers:
        raise Refused(
            Stage.CONSTRUCT,
            f"{sizes.num_layers.key} is {sizes.num_layers.value}, and this version builds one"
            " layer",
            claims.ONE_LAYER,
        )
    return sizes


def _fc_norm(config: ConfigView, contract: Contract) -> Fact[bool]:
    if not contract.fc_norm:
        return assumed(False, config.key("fc_norm"), whose=config.whose)
    fc_norm = config.flag("fc_norm")
    return fc_norm if fc_norm.value else config.flag("use_aux_norm")


def _input_norm(config: ConfigView, contract: Contract) -> Fact[bool]:
    fact = nested_flag(config, "norm_before_fc") or config.flag("norm_before_fc")
    if contract.norm_before_fc is None and fact.value:
        raise NotCovered(
            f"{fact.key} is true, and whether SGLang {contract.version} reads it is not known:"
            " 0.5.16 does not, 0.5.18 does"
        )
    if not contract.norm_before_fc:
        return assumed(False, fact.key, whose=config.whose)
    return fact


def _feedback(config: ConfigView, contract: Contract) -> Fact[Feedback]:
    flag = config.flag("norm_output")
    if not contract.norm_output:
        return assumed(Feedback.PRE_NORM, flag.key, whose=config.whose)
    return flag.map(lambda on: Feedback.POST_NORM if on else Feedback.PRE_NORM)
