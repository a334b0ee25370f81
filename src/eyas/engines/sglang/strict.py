"""The types that transformers asks of a Llama config's values, from 0.5.11's transformers on."""

from __future__ import annotations

from eyas.engines.config import ConfigView
from eyas.engines.sglang import claims
from eyas.engines.stop import Refused
from eyas.spec import Stage

_WHOLE = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "max_position_embeddings",
)
_WHOLE_OR_NULL = ("num_key_value_heads", "head_dim", "pretraining_tp", "bos_token_id")
_SWITCHES = ("tie_word_embeddings", "attention_bias", "mlp_bias", "use_cache")
_REALS = ("rms_norm_eps", "initializer_range")


def require_types(config: ConfigView) -> None:
    """Refuse a value of another type than its field's: a null, or a whole number for a real one."""
    for names, wanted in (
        (_WHOLE, (int,)),
        (_WHOLE_OR_NULL, (int, type(None))),
        (_SWITCHES, (bool,)),
        (_REALS, (float,)),
        (("hidden_act",), (str,)),
    ):
        for name in names:
            if config.has(name) and not _is(config.get(name), wanted):
                raise Refused(
                    Stage.CONFIG,
                    f"{config.key(name)} is {config.get(name)!r}, and transformers asks for"
                    f" {' or '.join(_spoken(kind) for kind in wanted)}",
                    claims.STRICT_TYPES,
                )
    hidden, heads = config.whole("hidden_size"), config.whole("num_attention_heads")
    if not heads.value or hidden.value % heads.value:
        raise Refused(
            Stage.CONFIG,
            f"{hidden.key} is {hidden.value}, which is no multiple of the {heads.value} attention"
            " heads",
            claims.STRICT_TYPES,
        )


def _is(value: object, wanted: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in wanted
    return isinstance(value, wanted)


def _spoken(kind: type) -> str:
    return {int: "a whole number", bool: "true or false", float: "a number with a point"}.get(
        kind, "a word" if kind is str else "null"
    )
