"""Which model class SGLang builds for a drafter's architecture."""

from __future__ import annotations

from enum import Enum

from eyas.checkpoint import Checkpoint
from eyas.checkpoint.json_file import read_json_object
from eyas.checkpoint.regular import regular_file
from eyas.engines.config import ConfigView
from eyas.engines.sglang import claims
from eyas.engines.sglang.contract import Contract
from eyas.engines.stop import NotCovered, Refused
from eyas.spec import Stage


class ModelClass(Enum):
    """The classes with a contract, by the architecture that names them."""

    EAGLE3 = "LlamaForCausalLMEagle3"
    LATENT_EAGLE3 = "Eagle3DeepseekV2ForCausalLM"
    EAGLE = "LlamaForCausalLMEagle"
    LLAMA = "LlamaForCausalLM"


_MODELOPT = "hf_quant_config.json"

# Names that drafters carry and no SGLang of the known range registers.
_UNREGISTERED = frozenset(
    {
        "Eagle3DraftModel",
        "Eagle3Speculator",
        "EagleLlamaForCausalLM",
        "Eagle3LlamaForCausalLM",
        "Eagle3Qwen3ForCausalLM",
        "LlamaEagle3DraftModel",
        "PEagleDraftModel",
        "PeagleLlamaForCausalLM",
        "Qwen3Eagle3Model",
    }
)


def model_class(config: ConfigView, checkpoint: Checkpoint, contract: Contract) -> ModelClass:
    """The class that is built.

    Refuses an architecture that is not registered; raises NotCovered for one without a contract.
    """
    names = config.get("architectures")
    key = config.key("architectures")
    if isinstance(names, str) and names:
        raise NotCovered(f"{key} is a word, and what SGLang makes of one is not read")
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        raise Refused(Stage.CONFIG, f"{key} names no architecture", claims.ARCHITECTURE)
    name = names[0]
    known = {found.value: found for found in ModelClass}
    if name in _UNREGISTERED or (name == ModelClass.LATENT_EAGLE3.value and not contract.latent):
        raise Refused(
            Stage.CONSTRUCT,
            f"{key} is {name}, which SGLang {contract.version} does not register",
            claims.ARCHITECTURE,
        )
    if name not in known:
        raise NotCovered(
            f"{key} is {name}, and eyas has a contract for SGLang's {', '.join(known)} alone so far"
        )
    _require_unquantised(config, checkpoint, name)
    return known[name]


def _require_unquantised(config: ConfigView, checkpoint: Checkpoint, name: str) -> None:
    """Raise NotCovered for a drafter that SGLang would take for quantised."""
    for key in ("quantization_config", "compression_config"):
        if config.get(key) is not None:
            raise NotCovered(
                f"{config.key(key)} is there, and eyas does not read quantised drafters yet"
            )
    # ModelOpt writes this file beside every export, with a null quant_algo where it left all as is.
    if not (checkpoint.directory / _MODELOPT).exists():
        return
    path = regular_file(checkpoint.directory, _MODELOPT)
    file = read_json_object(path, hint="export the drafter again")
    table = file.get("quantization", file)  # both forms are in use
    algorithm = table.get("quant_algo") if isinstance(table, dict) else table
    if algorithm is not None or name != ModelClass.EAGLE3.value:
        raise NotCovered(
            f"{_MODELOPT} has quant_algo {algorithm}, and eyas does not read quantised drafters yet"
        )
