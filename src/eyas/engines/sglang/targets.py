"""Which targets can hand captured states to a drafter, by architecture and SGLang version.

EAGLE-3 needs a method `set_eagle3_layers_to_capture` on the target's model class, its own or an
inherited one; a wrapper of a multimodal model must have it too. Read from the model files of every
release from 0.4.9 to 0.5.23 but 0.5.0, of which release candidate 2 was read.
"""

from __future__ import annotations

from eyas.checkpoint import TargetFacts
from eyas.engines.sglang import claims
from eyas.engines.sglang.contract import Contract
from eyas.engines.stop import Refused
from eyas.engines.version import version_of
from eyas.spec import Stage

# The first version whose class has the method, by architecture.
_CAPTURING = {
    "0.4.9": (
        "InternLM3ForCausalLM",
        "Llama4ForCausalLM",
        "Llama4ForConditionalGeneration",
        "LlamaForCausalLM",
        "MistralForCausalLM",
        "Phi3ForCausalLM",
        "Qwen3ForCausalLM",
        "Qwen3MoeForCausalLM",
    ),
    "0.5.0rc2": ("GptOssForCausalLM",),
    "0.5.2": (
        "Glm4vForConditionalGeneration",
        "Glm4vMoeForConditionalGeneration",
        "Qwen2ForCausalLM",
        "Qwen2MoeForCausalLM",
        "Qwen2_5_VLForConditionalGeneration",
    ),
    "0.5.3rc2": ("ApertusForCausalLM",),
    "0.5.4.post2": (
        "DeepseekV2ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
    ),
    "0.5.5": ("Glm4MoeForCausalLM",),
    "0.5.5.post1": ("MiniMaxM2ForCausalLM",),
    "0.5.5.post3": ("TeleFLMForCausalLM",),
    "0.5.6": ("LongcatFlashForCausalLM",),
    "0.5.6.post1": ("Ministral3ForCausalLM", "MistralLarge3ForCausalLM"),
    "0.5.8": ("Glm4MoeLiteForCausalLM", "IQuestCoderForCausalLM"),
    "0.5.9": (
        "BailingMoEForCausalLM",
        "BailingMoeForCausalLM",
        "BailingMoeV2ForCausalLM",
        "ExaoneMoEForCausalLM",
        "GlmMoeDsaForCausalLM",
        "Qwen3NextForCausalLM",
    ),
    "0.5.10": (
        "KimiK25ForConditionalGeneration",
        "SarvamMoEForCausalLM",
    ),
    "0.5.11": (
        "InternS1ProForConditionalGeneration",
        "Qwen3VLForConditionalGeneration",
        "Qwen3VLMoeForConditionalGeneration",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
    ),
    "0.5.12": (
        "Gemma3ForCausalLM",
        "Gemma3ForConditionalGeneration",
        "Gemma4ForCausalLM",
        "Gemma4ForConditionalGeneration",
        "InternS2PreviewForConditionalGeneration",
    ),
    "0.5.13": ("Gemma4UnifiedForConditionalGeneration",),
    "0.5.16": ("MellumForCausalLM", "MiniMaxM3SparseForCausalLM"),
    "0.5.18": (
        "InternS2MobiusForConditionalGeneration",
        "MiniMaxM3SparseForConditionalGeneration",
    ),
    "0.5.20": (
        "Cosmos3ForConditionalGeneration",
        "Glm5NextForConditionalGeneration",
        "Qwen4ExpForConditionalGeneration",
    ),
    "0.5.22": (
        "ExaoneMoeForCausalLM",
        "Qwen3_5ForCausalLM",
        "Qwen3_5MoeForCausalLM",
    ),
}
_FIRST = {name: first for first, names in _CAPTURING.items() for name in names}

# The first version whose class no longer inherits the method.
_GONE = dict.fromkeys(
    ("Glm4vForConditionalGeneration", "Glm4vMoeForConditionalGeneration"), "0.5.4.post2"
)


def require_capture(target: TargetFacts | None, contract: Contract) -> None:
    """Refuse a target whose class cannot hand over captured states."""
    if target is None or not target.architectures:
        return
    name = target.architectures[0]
    first, gone = _FIRST.get(name), _GONE.get(name)
    if first is None:
        known = "no version that eyas knows has it"
    elif contract.number < version_of(first):
        known = f"{first} is the first that has it"
    elif gone is not None and contract.number >= version_of(gone):
        known = f"{gone} and later have it no more"
    else:
        return
    raise Refused(
        Stage.JOIN,
        f"the target's class {name} has no set_eagle3_layers_to_capture in this version, and"
        f" {known}",
        claims.no_capture(contract),
    )


# The first version whose class hands over its embedding and head, where it is not the oldest.
_SHARING = {"Gemma3ForCausalLM": "0.5.12"}


def require_sharing(target: TargetFacts | None, contract: Contract) -> None:
    """Refuse a target whose class cannot hand over its embedding and head."""
    if target is None or not target.architectures:
        return
    name = target.architectures[0]
    first = _SHARING.get(name)
    if first is not None and contract.number < version_of(first):
        raise Refused(
            Stage.JOIN,
            f"the target's class {name} has no get_embed_and_head in this version, and {first} is"
            " the first that has it",
            claims.NO_SHARING,
        )
