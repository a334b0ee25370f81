"""A draft config as vLLM parses it: speculators or flat, and the class that results."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eyas.checkpoint import Checkpoint
from eyas.engines.config import LLAMA_DEFAULTS, ConfigView
from eyas.engines.stop import NotCovered, Refused
from eyas.engines.vllm import claims
from eyas.spec import Claim, Stage

_LLAMA_CLASS = frozenset(
    {
        "Eagle3LlamaForCausalLM",
        "LlamaForCausalLMEagle3",
        "Eagle3MiniMaxM2ForCausalLM",
        "Eagle3Qwen2_5vlForCausalLM",
        "Eagle3Qwen3vlForCausalLM",
    }
)
_OTHER_CLASSES = frozenset(
    {
        "Eagle3Qwen3ForCausalLM",
        "PeagleQwen3ForCausalLM",
        "PEagleDraftModel",
        "PeagleLlamaForCausalLM",
        "Eagle3DeepseekV2ForCausalLM",
        "Eagle3DeepseekV3ForCausalLM",
        "EagleLlamaForCausalLM",
        "EagleLlama4ForCausalLM",
        "EagleMiniCPMForCausalLM",
        "EagleMistralLarge3ForCausalLM",
        "EagleDeepSeekMTPModel",
    }
)
_COPIED = (
    "draft_vocab_size",
    "target_hidden_size",
    "norm_before_residual",
    "norm_before_fc",
    "fc_norm",
    "norm_output",
    "eagle_aux_hidden_state_layer_ids",
)


def is_speculators(checkpoint: Checkpoint) -> bool:
    """Whether vLLM takes the config for a speculators one."""
    values = checkpoint.config
    return values.get("model_type") is None and isinstance(values.get("speculators_config"), dict)


def draft_config(checkpoint: Checkpoint, version: str, method: str) -> ConfigView:
    """The parsed config of an EAGLE-3 Llama drafter; refuses or raises NotCovered for others."""
    if checkpoint.config.get("quantization_config") is not None:
        raise NotCovered(
            f"{checkpoint.config_file} :: quantization_config is there, and eyas does not read"
            " quantised drafters yet"
        )
    if is_speculators(checkpoint):
        return _speculators(checkpoint, version)
    return _flat(checkpoint, version, method)


def _speculators(checkpoint: Checkpoint, version: str) -> ConfigView:
    raw, file = checkpoint.config, checkpoint.config_file
    kind = raw.get("speculators_model_type")
    if kind != "eagle3":
        raise NotCovered(
            f"{file} :: speculators_model_type is {kind!r}, and eyas has a contract for eagle3"
        )
    layer = raw.get("transformer_layer_config")
    model_type = layer.get("model_type", "llama") if isinstance(layer, dict) else None
    if not isinstance(layer, dict) or model_type not in ("llama", "qwen3"):
        raise Refused(
            Stage.CONFIG,
            f"{file} :: transformer_layer_config.model_type is neither llama nor qwen3",
            claims.SPECULATORS,
        )
    if model_type == "qwen3":
        raise NotCovered(
            f"{file} :: transformer_layer_config.model_type is qwen3, and eyas has a contract for"
            " vLLM's Llama class alone so far"
        )
    # A width or a list that the top level leaves empty does not replace the nested one.
    copied = {name: raw[name] for name in _COPIED if raw.get(name) is not None}
    kept = ("target_hidden_size", "eagle_aux_hidden_state_layer_ids")
    base = {k: v for k, v in layer.items() if k not in copied and (k not in _COPIED or k in kept)}
    return ConfigView(
        values={**base, **copied},
        whose=f"vllm {version}",
        stop=_stopper(claims.SPECULATORS_SIZES),
        file=file,
        places={name: f"transformer_layer_config.{name}" for name in _LAYER_KEYS | set(base)},
        defaults={"norm_before_residual": True},
    )


_LAYER_KEYS = frozenset({*LLAMA_DEFAULTS, "num_key_value_heads", "head_dim", "attention_bias"})


def _flat(checkpoint: Checkpoint, version: str, method: str) -> ConfigView:
    raw, file = checkpoint.config, checkpoint.config_file
    model_type = raw.get("model_type")
    if not isinstance(model_type, str):
        raise Refused(
            Stage.CONFIG,
            f"{file} has neither model_type nor a speculators_config",
            claims.MODEL_TYPE,
        )
    _require_llama_class(raw, file, method)

    def unknown(message: str) -> Exception:
        return NotCovered(f"{message}, and eyas does not know the defaults of {model_type!r}")

    llama = model_type == "llama"
    return ConfigView(
        values=raw,
        whose=f"vllm {version}",
        stop=_stopper(claims.SIZES) if llama else unknown,
        file=file,
        defaults=LLAMA_DEFAULTS if llama else {},
    )


def _stopper(claim: Claim) -> Callable[[str], Exception]:
    def stop(message: str) -> Exception:
        return Refused(Stage.CONSTRUCT, message, claim)

    return stop


def _require_llama_class(raw: Mapping[str, object], file: str, method: str) -> None:
    names = raw.get("architectures")
    key = f"{file} :: architectures"
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        raise Refused(Stage.CONFIG, f"{key} names no architecture", claims.ARCHITECTURE)
    name = names[0]
    if method == "eagle":
        built = name if name.startswith("Eagle") else f"Eagle{name}"
    elif name.startswith("Eagle3") or name.endswith("Eagle3"):
        built = name
    else:
        built = f"Eagle3{name}"
    other_kind = any(kind in name for kind in ("DFlash", "DSpark"))  # launched by other methods
    if other_kind or name in _OTHER_CLASSES or built in _OTHER_CLASSES:
        raise NotCovered(
            f"{key} is {name}, and eyas has a contract for vLLM's Llama EAGLE-3 class alone so far"
        )
    if built not in _LLAMA_CLASS:
        raise Refused(
            Stage.CONFIG,
            f"{key} is {name}, for which method {method} looks up {built}: not registered",
            claims.ARCHITECTURE,
        )
