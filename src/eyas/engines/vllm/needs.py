"""What vLLM's classes read of a config without a default, beyond the sizes."""

from __future__ import annotations

from collections.abc import Mapping

from eyas.engines.config import ConfigView
from eyas.engines.stop import Refused
from eyas.engines.vllm import claims
from eyas.engines.vllm.architecture import DraftClass
from eyas.spec import Stage

# vllm/model_executor/layers/rotary_embedding/__init__.py 102-350
_ROPE_TYPES = (
    *("bailing_mrope", "default", "proportional", "llama3", "mllama4", "linear", "ntk", "dynamic"),
    *("yarn", "longrope", "su", "mrope", "openpangu"),
)
_AS_LONG = ("llama3", "yarn", "longrope")  # transformers fills in the drafter's own length
_POSITIONS = "max_position_embeddings"
_WINDOW = "sliding_window"


def require_needed(config: ConfigView, built: DraftClass, *, nested: bool) -> None:
    """Refuses a config that lacks what `built` reads; `nested` says that it is speculators'."""
    if nested:
        _require_nested(config, built)
    elif built in (DraftClass.LLAMA, DraftClass.EAGLE1, DraftClass.DEEPSEEK):
        _require_theta(config)
    if built is DraftClass.DEEPSEEK:
        _require_own_length(config)
    _require_rope_type(config, nested=nested)
    types = config.get("layer_types")
    slides = isinstance(types, list) and "sliding_attention" in types
    own_window = config.get("model_type") == "qwen3" and not nested
    if slides and built is DraftClass.LLAMA and not config.has(_WINDOW) and not own_window:
        raise _missing(config, _WINDOW, "a sliding layer reads it")


def _require_nested(config: ConfigView, built: DraftClass) -> None:
    """A speculators config has no class that fills anything in."""
    kind = _table(config, nested=True).get("rope_type")
    absent = config.get(_POSITIONS) is None
    if absent and (kind == "yarn" or (kind in _AS_LONG and not config.has(_POSITIONS))):
        raise Refused(
            Stage.CONFIG,
            f"{config.key(_POSITIONS)} is missing, and a rotary embedding of type {kind} needs it",
            claims.TYPED,
        )
    needed = ("num_key_value_heads", _POSITIONS) if built is DraftClass.QWEN3 else ()
    for name in needed:
        if not config.has(name):
            raise _missing(config, name, "the Qwen3 class reads it")
    if config.has(_POSITIONS) and config.get(_POSITIONS) is None:
        raise Refused(
            Stage.CONSTRUCT,
            f"{config.key(_POSITIONS)} is null, and the rotary embedding is as long",
            claims.SPECULATORS_SIZES,
        )


def _missing(config: ConfigView, name: str, why: str) -> Refused:
    return Refused(
        Stage.CONSTRUCT, f"{config.key(name)} is missing, and {why}", claims.PLAIN_ATTRIBUTES
    )


def _require_theta(config: ConfigView) -> None:
    table = _table(config)
    null = config.has("rope_theta") and config.get("rope_theta") is None
    if null and "rope_theta" not in table:
        raise Refused(
            Stage.CONSTRUCT,
            f"{config.key('rope_theta')} is null, and the rotary embedding is computed from it",
            claims.PLAIN_ATTRIBUTES,
        )


def _require_own_length(config: ConfigView) -> None:
    """Latent attention takes every scaled rotary embedding for DeepSeek's yarn."""
    table = _table(config)
    kind = table.get("rope_type") or table.get("type") or "default"
    name = "original_max_position_embeddings"
    if kind not in ("default", "mrope", *_AS_LONG) and name not in table:
        raise Refused(
            Stage.CONSTRUCT,
            f"{config.key('rope_parameters')} is {kind} and has no {name}, which latent attention"
            " needs",
            claims.PLAIN_ATTRIBUTES,
        )


def _require_rope_type(config: ConfigView, *, nested: bool) -> None:
    table = _table(config, nested=nested)
    kind = table.get("rope_type") or table.get("type") or "default"
    if kind not in _ROPE_TYPES:
        raise Refused(
            Stage.CONSTRUCT,
            f"{config.key('rope_parameters')} is of type {kind!r}, which vLLM does not know",
            claims.ROPE_TYPES,
        )


def _table(config: ConfigView, *, nested: bool = False) -> Mapping[str, object]:
    """The table of rotary embedding that is read."""
    names = ("rope_parameters", "rope_scaling") if nested else ("rope_scaling", "rope_parameters")
    return next((config.table(name) for name in names if config.get(name)), {})
