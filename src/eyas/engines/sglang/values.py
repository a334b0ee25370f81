"""What becomes of values of a wrong type in a Llama config, which transformers parses.

From 0.5.11 on the parser asks each value for its type; before, a wrong one raises where it is first
computed with, and null is no default.
"""

from __future__ import annotations

from eyas.engines.config import ConfigView
from eyas.engines.sglang import claims
from eyas.engines.sglang.contract import Contract
from eyas.engines.stop import NotCovered, Refused
from eyas.spec import Claim, Stage

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
_COUNTS = ("draft_vocab_size", "target_hidden_size", "num_aux_hidden_states")
_NEVER_NULL = ("intermediate_size", "vocab_size", "max_position_embeddings", "hidden_act")
_DTYPES = ("float64", "double", "float32", "float", "float16", "half", "bfloat16")


def require_values(config: ConfigView, contract: Contract) -> None:
    """Refuse a value that the parser, or what is computed from it first, cannot take."""
    if contract.strict_types:
        _require_types(config)
    else:
        _require_computable(config, contract)
    _require_covered(config)
    if config.get("num_attention_heads") == 0:
        raise _refusal(config, "num_attention_heads", "is divided by", _claim(contract))
    if contract.strict_types:
        _require_whole_heads(config)
        _require_layer_types(config)
    for name in ("torch_dtype", "dtype"):
        value = config.get(name)
        if isinstance(value, str) and value.removeprefix("torch.") not in _DTYPES:
            raise _refusal(config, name, "must name a type of torch", _claim(contract))


def _require_whole_heads(config: ConfigView) -> None:
    """The parser divides with its own defaults where the file says nothing."""
    hidden, heads = config.whole("hidden_size"), config.whole("num_attention_heads")
    if hidden.value % heads.value:
        raise Refused(
            Stage.CONFIG,
            f"{hidden.key} is {hidden.value}, no multiple of {heads.value} attention heads",
            claims.STRICT_TYPES,
        )


def _require_covered(config: ConfigView) -> None:
    """Raise NotCovered for a number that Python computes with and no config means."""
    for name in (*_WHOLE, *_WHOLE_OR_NULL, *_COUNTS):
        value = config.get(name)
        if isinstance(value, bool | float) or (isinstance(value, int) and value < 0):
            raise _unread(config, name)
    for name in _REALS:
        value = config.get(name)
        if config.has(name) and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise _unread(config, name)
    if isinstance(config.get("rope_theta"), bool):
        raise _unread(config, "rope_theta")
    if config.get("hidden_size") == 0:
        raise _unread(config, "hidden_size")
    if isinstance(config.get("torch_dtype"), list):
        raise _unread(config, "torch_dtype")


def _unread(config: ConfigView, name: str) -> NotCovered:
    return NotCovered(
        f"{config.key(name)} is {config.get(name)!r}, and what this version makes of it is not read"
    )


def _require_types(config: ConfigView) -> None:
    for names, wanted in (
        (_WHOLE, (int,)),
        (_WHOLE_OR_NULL, (int, type(None))),
        (_SWITCHES, (bool,)),
        (_REALS, (float,)),
        (("hidden_act",), (str,)),
    ):
        for name in names:
            if config.has(name) and not _is(config.get(name), wanted):
                needed = f"must be {' or '.join(_SPOKEN[kind] for kind in wanted)}"
                raise _refusal(config, name, needed, claims.STRICT_TYPES)


_SPOKEN = {
    int: "a whole number",
    bool: "true or false",
    float: "a number with a point",
    str: "a word",
    type(None): "null",
}


def _is(value: object, wanted: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in wanted
    return isinstance(value, wanted)


def _require_layer_types(config: ConfigView) -> None:
    """The parser counts the layers' types, which SGLang's classes then do not read."""
    types, layers = config.get("layer_types"), config.whole("num_hidden_layers")
    if isinstance(types, list) and len(types) != layers.value:
        raise Refused(
            Stage.CONFIG,
            f"{config.key('layer_types')} has {len(types)} entries, and {layers.key} is"
            f" {layers.value}",
            claims.STRICT_TYPES,
        )


def _require_computable(config: ConfigView, contract: Contract) -> None:
    for name in ("hidden_size", "num_attention_heads"):
        if config.has(name) and not isinstance(config.get(name), int | float):
            raise _refusal(config, name, "is divided", claims.UNTYPED)
    name = "quantization_config"
    if contract.drops_no_null and config.has(name) and config.get(name) is None:
        raise _refusal(config, name, "must not be null", claims.UNTYPED)
    longest = config.get("max_position_embeddings")
    if isinstance(longest, str) and longest.isdecimal():
        raise _unread(config, "max_position_embeddings")
    if isinstance(longest, str | list | dict):
        needed = "must be a whole number"
        raise _refusal(config, "max_position_embeddings", needed, claims.UNTYPED)
    for name in _NEVER_NULL:
        if config.has(name) and config.get(name) is None:
            raise Refused(
                Stage.CONSTRUCT, f"{config.key(name)} is null, and is needed", claims.UNTYPED
            )


def _refusal(config: ConfigView, name: str, needed: str, claim: Claim) -> Refused:
    return Refused(Stage.CONFIG, f"{config.key(name)} is {config.get(name)!r}, and {needed}", claim)


def _claim(contract: Contract) -> Claim:
    return claims.STRICT_TYPES if contract.strict_types else claims.UNTYPED
