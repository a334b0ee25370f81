"""What transformers refuses of a flat config before vLLM sees it: its config classes are typed."""

from __future__ import annotations

from collections.abc import Mapping

from eyas.engines.stop import Refused
from eyas.engines.vllm import claims
from eyas.spec import Stage

_WHOLE = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "max_position_embeddings",
)
_WHOLE_OR_NULL = ("num_key_value_heads", "head_dim")
_REAL = ("rms_norm_eps", "initializer_range")
_SWITCHES = ("attention_bias", "tie_word_embeddings", "use_cache")
_TABLES = ("rope_parameters", "rope_scaling")  # the second is an older name of the first
# What a class has beyond the fields that all four share, and where it is stricter.
_MORE: Mapping[str, Mapping[str, str]] = {
    "llama": {"mlp_bias": "a switch"},
    "qwen3": {"head_dim": "a whole number", "use_sliding_window": "a switch"},
    "deepseek_v2": {
        "mlp_bias": "a switch",
        "kv_lora_rank": "a whole number",
        "qk_nope_head_dim": "a whole number",
        "qk_rope_head_dim": "a whole number",
        "v_head_dim": "a whole number",
        "q_lora_rank": "a whole number or null",
    },
    "kimi_k2": {
        "kv_lora_rank": "a whole number",
        "qk_nope_head_dim": "a whole number",
        "qk_rope_head_dim": "a whole number",
        "v_head_dim": "a whole number or null",
        "q_lora_rank": "a whole number or null",
    },
}
_FIELDS: Mapping[str, str] = {
    **dict.fromkeys(_WHOLE, "a whole number"),
    **dict.fromkeys(_WHOLE_OR_NULL, "a whole number or null"),
    **dict.fromkeys(_REAL, "a number with a point"),
    **dict.fromkeys(_SWITCHES, "a switch"),
    **dict.fromkeys(_TABLES, "an object or null"),
    "hidden_act": "a word",
}
_KINDS: Mapping[str, tuple[type, ...]] = {
    "a whole number": (int,),
    "a whole number or null": (int, type(None)),
    "a number with a point": (float,),
    "a switch": (bool,),
    "an object or null": (dict, type(None)),
    "a word": (str,),
}
_DIVIDES = ("llama", "deepseek_v2")  # the classes that divide the width by the heads


def require_typed(config: Mapping[str, object], file: str) -> None:
    """Refuses a value that the config class of its model_type does not take."""
    model_type = str(config.get("model_type"))
    if model_type not in _MORE:
        return
    for name, kind in {**_FIELDS, **_MORE[model_type]}.items():
        if name in config and type(config[name]) not in _KINDS[kind]:
            raise Refused(
                Stage.CONFIG,
                f"{file} :: {name} is {config[name]!r} where {model_type}'s config class takes"
                f" {kind}",
                claims.TYPED,
            )
    width, heads = config.get("hidden_size", 4096), config.get("num_attention_heads", 32)
    if model_type in _DIVIDES and not _divides(heads, width):
        raise Refused(
            Stage.CONFIG,
            f"{file} :: hidden_size is {width}, no multiple of {heads} attention heads",
            claims.TYPED,
        )
    require_layer_types(config, config.get("num_hidden_layers"), file)
    require_complete_rope(config, file)


def require_layer_types(config: Mapping[str, object], layers: object, file: str) -> None:
    """Refuses as many layer_types as there are no layers."""
    types = config.get("layer_types")
    if isinstance(types, list) and isinstance(layers, int) and len(types) != layers:
        raise Refused(
            Stage.CONFIG,
            f"{file} :: layer_types names {len(types)} layers, and num_hidden_layers is {layers}",
            claims.TYPED,
        )


def _divides(heads: object, width: object) -> bool:
    if not isinstance(heads, int) or not isinstance(width, int):
        return True  # for the check of its type
    return heads > 0 and width % heads == 0


_ROPE_NEEDS: Mapping[str, tuple[str, ...]] = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "longrope": ("short_factor", "long_factor"),
}
_ARCHITECTURE_SIZES = (
    "hidden_size",
    "vocab_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
)


def require_complete_rope(config: Mapping[str, object], file: str) -> None:
    """Refuses a scaled rotary embedding without its numbers."""
    name = next((n for n in ("rope_scaling", "rope_parameters") if config.get(n)), None)
    table = config.get(name) if name else None
    if not isinstance(table, dict):
        return
    kind = str(table.get("rope_type") or table.get("type") or "default")
    missing = [key for key in _ROPE_NEEDS.get(kind, ()) if key not in table]
    if missing:
        raise Refused(
            Stage.CONFIG, f"{file} :: {name} is {kind} and lacks {missing[0]}", claims.TYPED
        )


def require_sized(layer: Mapping[str, object], file: str) -> None:
    """Refuses what a speculators config cannot have in its transformer_layer_config."""
    place = f"{file} :: transformer_layer_config"
    for name in _ARCHITECTURE_SIZES:
        if name in layer and layer[name] is None:
            raise Refused(Stage.CONFIG, f"{place}.{name} is null", claims.ARCHITECTURE_SIZES)
    require_layer_types(layer, layer.get("num_hidden_layers"), place)
    if "rms_norm_eps" in layer and layer["rms_norm_eps"] is None:
        raise Refused(Stage.FIRST_REQUEST, f"{place}.rms_norm_eps is null", claims.NULL_EPS)
