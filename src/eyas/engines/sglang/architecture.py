"""Which model class SGLang builds for a drafter's architecture."""

from __future__ import annotations

from eyas.engines.config import ConfigView
from eyas.engines.sglang import claims
from eyas.engines.stop import NotCovered, Refused
from eyas.spec import Stage

_EAGLE3 = "LlamaForCausalLMEagle3"

# Names that drafters carry and no SGLang of the known range registers.
_UNREGISTERED = frozenset(
    {
        "Eagle3DraftModel",
        "Eagle3Speculator",
        "Eagle3LlamaForCausalLM",
        "Eagle3Qwen3ForCausalLM",
        "LlamaEagle3DraftModel",
        "PEagleDraftModel",
        "PeagleLlamaForCausalLM",
        "Qwen3Eagle3Model",
    }
)


def require_llama_eagle3(config: ConfigView) -> None:
    """Refuse an unregistered architecture; raise NotCovered for a class without a contract."""
    names = config.get("architectures")
    key = config.key("architectures")
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        raise Refused(Stage.CONFIG, f"{key} names no architecture", claims.ARCHITECTURE)
    name = names[0]
    if name == _EAGLE3:
        if config.get("quantization_config") is not None:
            raise NotCovered(
                f"{config.key('quantization_config')} is there, and eyas does not read quantised"
                " drafters yet"
            )
        return
    if name in _UNREGISTERED:
        raise Refused(
            Stage.CONSTRUCT,
            f"{key} is {name}, which SGLang does not register",
            claims.ARCHITECTURE,
        )
    raise NotCovered(
        f"{key} is {name}, and eyas has a contract for SGLang's {_EAGLE3} alone so far"
    )
