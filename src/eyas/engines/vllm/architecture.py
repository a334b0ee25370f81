"""The class that vLLM builds for a draft config, by method and architecture."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from eyas.engines.stop import NotCovered, Refused
from eyas.engines.vllm import claims
from eyas.spec import Stage


class DraftClass(StrEnum):
    """The classes of drafters that eyas has a contract for."""

    LLAMA = "Eagle3LlamaForCausalLM"
    QWEN3 = "Eagle3Qwen3ForCausalLM"
    DEEPSEEK = "Eagle3DeepseekV2ForCausalLM"
    EAGLE1 = "EagleLlamaForCausalLM"
    DFLASH = "DFlashQwen3ForCausalLM"


# What vllm/model_executor/models/registry.py registers (0.32.0, 626-676).
_BUILT: Mapping[str, DraftClass] = {
    "Eagle3LlamaForCausalLM": DraftClass.LLAMA,
    "LlamaForCausalLMEagle3": DraftClass.LLAMA,
    "PEagleDraftModel": DraftClass.LLAMA,
    "PeagleLlamaForCausalLM": DraftClass.LLAMA,
    "Eagle3MiniMaxM2ForCausalLM": DraftClass.LLAMA,
    "Eagle3Qwen2_5vlForCausalLM": DraftClass.LLAMA,
    "Eagle3Qwen3vlForCausalLM": DraftClass.LLAMA,
    "Eagle3Qwen3ForCausalLM": DraftClass.QWEN3,
    "PeagleQwen3ForCausalLM": DraftClass.QWEN3,
    "Eagle3DeepseekV2ForCausalLM": DraftClass.DEEPSEEK,
    "Eagle3DeepseekV3ForCausalLM": DraftClass.DEEPSEEK,
    "EagleLlamaForCausalLM": DraftClass.EAGLE1,
    "DFlashDraftModel": DraftClass.DFLASH,
}
_WITHOUT_CONTRACT = frozenset(
    {
        "EagleCohereForCausalLM",
        "EagleLlama4ForCausalLM",
        "EagleMiniCPMForCausalLM",
        "EagleMistralForCausalLM",
        "EagleMistralLarge3ForCausalLM",
        "EagleDeepSeekMTPModel",
    }
)
# Drafters of other methods, which `--speculative-config` names or the path tells.
_OTHER_METHODS: Mapping[str, str] = {
    "DFlashDraftModel": "dflash",
    "DFlash2DraftModel": "dflash",
    "LiLiCorrDraftModel": "dflash",
    "DFlashLagunaForCausalLM": "dflash",
    "DFlashMuseGlimmerAssistantModel": "dflash",
    "MuseGlimmerAssistantModel": "dflash",
    "DSparkDraftModel": "dspark",
    "DSparkV41DraftModel": "dspark",
    "Qwen3DSparkModel": "dspark",
    "Qwen3OmniDSparkModel": "dspark",
    "K3DSparkModel": "dspark",
    "Gemma4DSparkModel": "dspark",
}
# Model types whose draft config is rewritten to a multi-token-prediction one.
_REWRITTEN: Mapping[str, str] = {
    "deepseek_v3": "DeepSeekMTPModel",
    "deepseek_v32": "DeepseekV32MTPModel",
    "glm_moe_dsa": "DeepseekV32MTPModel",
}


def native_method(config: Mapping[str, object]) -> str:
    """The method that a drafter was made for, by its config."""
    kind = config.get("speculators_model_type")
    if config.get("model_type") is None and kind is not None:
        return {"dflash": "dflash", "dflash2": "dflash", "dspark": "dspark"}.get(
            str(kind), "eagle3"
        )
    names = config.get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    return _OTHER_METHODS.get(name, "eagle3") if isinstance(name, str) else "eagle3"


def class_of(config: Mapping[str, object], file: str, method: str) -> DraftClass:
    """The class for a flat config under `method`; refuses an unregistered one, or NotCovered."""
    names = config.get("architectures")
    key = f"{file} :: architectures"
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        raise Refused(Stage.CONFIG, f"{key} names no architecture", claims.ARCHITECTURE)
    name = names[0]
    if method == "dspark" or _OTHER_METHODS.get(name) == "dspark":
        raise NotCovered(f"{key} is {name}, and eyas has no contract for drafters of method dspark")
    model_type = str(config.get("model_type"))
    rewritten = _REWRITTEN.get(model_type)
    built = _prefixed(rewritten or name, method)
    found = _BUILT.get(built)
    if found is not None:
        return found
    if method == "draft_model" or built in _WITHOUT_CONTRACT or built in _OTHER_METHODS:
        raise NotCovered(f"{key} is {name}: vLLM builds {built}, which eyas has no contract for")
    if rewritten is not None:
        raise Refused(
            Stage.CONFIG,
            f"{file} :: model_type is {model_type}, for which the architecture becomes"
            f" {rewritten}, and method {method} looks up {built}: not registered",
            claims.REWRITTEN,
        )
    raise Refused(
        Stage.CONFIG,
        f"{key} is {name}, for which method {method} looks up {built}: not registered",
        claims.ARCHITECTURE,
    )


def _prefixed(name: str, method: str) -> str:
    """The registered name that `method` makes of an architecture."""
    if method == "draft_model":
        return name
    if method == "dflash":
        kept = name.startswith("DFlash") or name.endswith("DFlash") or name == "LiLiCorrDraftModel"
        return name if kept else f"DFlash{name}"
    if method == "eagle":
        return name if name.startswith("Eagle") else f"Eagle{name}"
    return name if name.startswith("Eagle3") or name.endswith("Eagle3") else f"Eagle3{name}"
