"""The states that SGLang captures in the target, as boundaries."""

from __future__ import annotations

from collections.abc import Callable

from eyas.checkpoint import TargetFacts
from eyas.engines.capture import Capture, default_count
from eyas.engines.config import layer_ids
from eyas.engines.sglang import claims
from eyas.engines.sglang.contract import Contract
from eyas.engines.stop import NotCovered, Refused
from eyas.engines.version import version_of
from eyas.spec import Boundaries, Claim, DefaultBoundaries, Fact, Stage, assumed, declared

_IDS = "eagle_aux_hidden_state_layer_ids"
_KEY = f"config.json :: eagle_config.{_IDS}"

# Architectures whose set_eagle3_layers_to_capture is deepseek_v2's or a copy of it.
_FIRST_ID_DECIDES = frozenset(
    {
        "DeepseekV2ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
        "GlmMoeDsaForCausalLM",
        "MistralLarge3ForCausalLM",
        "KimiK25ForConditionalGeneration",
        "Glm4MoeLiteForCausalLM",
    }
)


def capture_of(
    eagle_config: object,
    contract: Contract,
    target: TargetFacts | None,
    *,
    graphs: bool,
    stop: Callable[[str], Exception],
) -> Capture:
    """What is captured for a drafter with this `eagle_config`."""
    raw = eagle_config.get(_IDS) if isinstance(eagle_config, dict) else None
    if raw == []:
        raise NotCovered(f"{_KEY} is an empty list, for which SGLang captures nothing")
    ids = layer_ids(raw, _KEY, stop)
    whose = f"sglang {contract.version}"
    layers = None if target is None else target.num_layers
    architecture = target.architectures[0] if target and target.architectures else ""
    if ids is None:
        return _default(architecture, layers, whose)
    shift, reasons = _shift(ids, architecture, layers, contract)
    captured = {i + shift for i in ids}
    if layers is not None:
        if layers in captured:
            reasons = (*reasons, claims.LAST_OUTPUT)
        end = layers + _captures_end(architecture, contract)
        captured = {k for k in captured if 0 <= k < end}
    wanted = tuple(sorted(captured))
    default = DefaultBoundaries()
    if contract.graphs_reset_ids and graphs and not _is_default(wanted, default, layers):
        return Capture(
            boundaries=assumed(default, _KEY, whose=whose),
            # prompts are read without graphs, so their width is the configured one
            count=len(captured),
            claims=(*reasons, claims.GRAPH_RESET, claims.DEFAULT_IDS),
        )
    fact: Fact[Boundaries] = declared(wanted, _KEY)
    if contract.first_id_decides and not architecture and ids[0] != 1:
        # Some targets would add nothing to these ids, and this one is not known.
        fact = assumed(wanted, _KEY, whose=f"{whose} for most targets")
        reasons = (*reasons, claims.FIRST_ID)
    return Capture(boundaries=fact, count=len(captured), claims=reasons)


# The first version that captures what leaves the last layer, by architecture; others leave it out.
_CAPTURES_END = {
    "Gemma3ForCausalLM": "0.5.12",
    "Gemma3ForConditionalGeneration": "0.5.12",
    "Gemma4ForCausalLM": "0.5.12",
    "Gemma4ForConditionalGeneration": "0.5.12",
    "Gemma4UnifiedForConditionalGeneration": "0.5.13",
    "GptOssForCausalLM": "0.5.17",
    "MiniMaxM3SparseForCausalLM": "0.5.23",
    "MiniMaxM3SparseForConditionalGeneration": "0.5.23",
}


# The first version whose target marks the layers themselves, by architecture.
_MARKS_LAYERS = {
    "Qwen2MoeForCausalLM": "0.5.4.post2",
    "Qwen3MoeForCausalLM": "0.5.4.post2",
    "Qwen3NextForCausalLM": "0.5.9",
    "MellumForCausalLM": "0.5.16",
}


def require_layers(eagle_config: object, contract: Contract, target: TargetFacts | None) -> None:
    """Refuse ids for which a target marks a layer that it does not have."""
    if target is None or not target.architectures or target.num_layers is None:
        return
    first = _MARKS_LAYERS.get(target.architectures[0])
    ids = eagle_config.get(_IDS) if isinstance(eagle_config, dict) else None
    if first is None or contract.number < version_of(first) or not isinstance(ids, list):
        return
    layers = target.num_layers
    beyond = [i for i in ids if not -layers <= i + 1 < layers]
    if beyond:
        raise Refused(
            Stage.JOIN,
            f"{_KEY} has {beyond[0]}, for which this target marks layer {beyond[0] + 1} of"
            f" {layers}, counted from 0",
            claims.MARKED_LAYERS,
        )


def _captures_end(architecture: str, contract: Contract) -> bool:
    first = _CAPTURES_END.get(architecture)
    return first is not None and contract.number >= version_of(first)


def _is_default(wanted: tuple[int, ...], default: DefaultBoundaries, layers: int | None) -> bool:
    return layers is not None and set(wanted) == {2, layers // 2, layers - 3}


def _default(architecture: str, layers: int | None, whose: str) -> Capture:
    if architecture == "MiniMaxM3SparseForConditionalGeneration" and layers is not None:
        shifted = (3, layers // 2 + 1, layers - 2)
        return Capture(
            boundaries=assumed(shifted, _KEY, whose=whose),
            count=3,
            claims=(claims.DEFAULT_IDS, claims.MINIMAX_DEFAULT),
        )
    count = default_count(layers)
    boundaries: Fact[Boundaries] = assumed(DefaultBoundaries(), _KEY, whose=whose)
    return Capture(boundaries=boundaries, count=count, claims=(claims.DEFAULT_IDS,))


def _shift(
    ids: tuple[int, ...], architecture: str, layers: int | None, contract: Contract
) -> tuple[int, tuple[Claim, ...]]:
    if contract.first_id_decides and architecture in _FIRST_ID_DECIDES:
        return int(ids[0] == 1), (claims.NESTED_IDS, claims.FIRST_ID)
    if contract.gpt_oss_last_layer and architecture == "GptOssForCausalLM" and max(ids) == layers:
        return 0, (claims.NESTED_IDS, claims.GPT_OSS_IDS)
    return 1, (claims.NESTED_IDS,)
