"""What vLLM's runners decide about a drafter, asked of their own code.

Imported by vllm_probe.py; needs vLLM.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CAPTURING = ("eagle3", "dflash", "dspark")  # the methods that are given captured states


def locked(copy: Path, launch: dict[str, str]) -> dict[str, Any]:
    """What `vllm serve` on a speculators directory settles by itself, by its own code.

    Only where the launch leaves it open: the method, and drafting in parallel of a peagle.
    """
    from vllm.transformers_utils.config import maybe_override_with_speculators

    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    if config.get("model_type") is not None or config.get("speculators_config") is None:
        return {}
    peagle = config.get("speculators_model_type") == "peagle"
    if launch.get("method") != "auto" and not (peagle and "parallel_drafting" not in launch):
        return {}
    _, _, settled = maybe_override_with_speculators(str(copy), None, False)
    names = ("method", "parallel_drafting")
    return {name: settled[name] for name in names if name in (settled or {})}


def join_in_v1(config: Any, drafter: Any, target: Any) -> bool:
    """Shares matrices and sets captured layers as the V1 runner does; whether it captures any."""
    from vllm.v1.spec_decode.llm_base_proposer import SpecDecodeBaseProposer
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    speculative = config.speculative_config
    captures = speculative.method in CAPTURING
    if speculative.method == "eagle3":
        wants = SpecDecodeBaseProposer._get_eagle3_use_aux_hidden_state_from_config
        captures = bool(wants(speculative))
    proposer = SimpleNamespace(model=drafter, vllm_config=config, use_local_argmax_reduction=False)
    inner = target.get_language_model() if hasattr(target, "get_language_model") else target
    SpecDecodeBaseProposer._maybe_share_embeddings(proposer, inner)
    SpecDecodeBaseProposer._maybe_share_lm_head(proposer, inner)
    runner = SimpleNamespace(
        use_aux_hidden_state_outputs=captures,
        model=target,
        get_model=lambda: target,
        speculative_config=speculative,
    )
    ids = GPUModelRunner._get_eagle3_aux_layers_from_config
    runner._get_eagle3_aux_layers_from_config = lambda: ids(runner)
    GPUModelRunner._setup_eagle3_aux_hidden_state_outputs(runner)
    return captures


def join_in_v2(config: Any, drafter: Any, target: Any) -> bool:
    """The same as the V2 runner does."""
    from vllm.v1.worker.gpu.spec_decode.eagle import eagle3_utils, utils

    speculative = config.speculative_config
    captures = speculative.method in CAPTURING
    if captures:
        eagle3_utils.set_eagle3_aux_hidden_state_layers(target, speculative)
    real = utils.get_model
    utils.get_model = lambda **_: drafter
    try:
        utils.load_eagle_model(target, config)
    finally:
        utils.get_model = real
    return captures


def require_mask_token(speculative: Any) -> None:
    """What the drafter's runner asks of the config before it builds a model, by its own code."""
    from vllm.v1.spec_decode.llm_base_proposer import SpecDecodeBaseProposer

    if speculative.parallel_drafting:
        require = SpecDecodeBaseProposer._init_parallel_drafting_params
        require(
            SimpleNamespace(
                draft_model_config=speculative.draft_model_config,
                pass_hidden_states_to_model=False,
            )
        )
