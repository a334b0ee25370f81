"""A draft config as SGLang's MLA class reads it."""

from __future__ import annotations

from eyas.engines.capture import USUAL_STATES, uses_states
from eyas.engines.config import ConfigView
from eyas.engines.latent import latent_sizes_of
from eyas.engines.rope import rope_of
from eyas.engines.sglang import latent_claims
from eyas.engines.sglang.contract import Contract
from eyas.engines.sglang.drafter import (
    DRAFT_VOCAB,
    TIED,
    Drafter,
    fc_norm_of,
    feedback_of,
    require_positive,
    require_silu,
)
from eyas.engines.sizes import sizes_of
from eyas.engines.stop import NotCovered, Refused
from eyas.spec import Fact, Rope, Stage, assumed, declared

# What is read as the config is parsed, wherever the class is named.
_PARSED = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")


def latent_drafter_of(config: ConfigView, contract: Contract) -> Drafter:
    """The drafter of the MLA class; refuses where construction raises."""
    if config.get("target_hidden_size") is None:  # null is as good as absent for this class
        config = config.without("target_hidden_size")
    for name in _PARSED:
        if config.get("model_type") == "llama" and not config.has(name):
            raise Refused(Stage.CONFIG, f"{config.key(name)} is missing", latent_claims.PARSED)
    if config.has("q_lora_rank") and config.get("q_lora_rank") is None:
        raise Refused(
            Stage.CONSTRUCT,
            f"{config.key('q_lora_rank')} is null, and this class needs a number",
            latent_claims.CONSTRUCTION,
        )
    vocabulary = "vocab_size" if config.get(DRAFT_VOCAB) is None else DRAFT_VOCAB
    sizes = sizes_of(config, draft_vocab_size=config.whole(vocabulary))
    if sizes.num_layers.value != 1:
        raise Refused(
            Stage.CONSTRUCT,
            f"{sizes.num_layers.key} is {sizes.num_layers.value}, and this class builds one layer",
            latent_claims.CONSTRUCTION,
        )
    require_positive(sizes, grouped=False)
    require_silu(config, latent_claims.CONSTRUCTION)
    off = assumed(False, config.key("norm_before_fc"), whose=config.whose)
    tied = config.flag(TIED)
    return Drafter(
        config=config,
        sizes=sizes,
        latent=latent_sizes_of(config),
        count=_count(config),
        head_from_target=vocabulary == "vocab_size" and not tied.value,
        keeps_embedding=sizes.target_hidden_size.value != sizes.hidden_size.value,
        tied=tied,
        fc_bias=config.flag("bias"),
        out_bias=False,
        fc_norm=fc_norm_of(config, known=contract.latent_fc_norm),
        input_norm=off,
        feedback=feedback_of(config, known=contract.latent_fc_norm),
        rope=_rope(config),
        uses_states=uses_states(config),
    )


def _count(config: ConfigView) -> Fact[int]:
    """The number of states that fc is sized for: this class looks at the top-level ids too."""
    name = "eagle_aux_hidden_state_layer_ids"
    nested = config.table("eagle_config").get(name)
    place, ids = (name, config.get(name)) if nested is None else (f"eagle_config.{name}", nested)
    if ids is None:
        return assumed(USUAL_STATES, config.key(name), whose=config.whose)
    if not isinstance(ids, list) or not ids:
        raise NotCovered(f"{config.key(place)} is {ids!r} where a list of layer ids is needed")
    return declared(len(ids), config.key(place))


def _rope(config: ConfigView) -> Fact[Rope]:
    rope = rope_of(config, reads_rope_parameters=True)
    if rope.value.kind not in ("default", "yarn", "deepseek_yarn"):
        raise NotCovered(
            f"{rope.key} is of the kind {rope.value.kind}, which SGLang's MLA class computes as"
            " yarn whatever it is called"
        )
    return rope
