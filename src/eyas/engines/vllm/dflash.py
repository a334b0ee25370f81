"""Where a DFlash drafter makes vLLM raise although its tensors land."""

from __future__ import annotations

from dataclasses import replace

from eyas.checkpoint import TargetFacts
from eyas.engines.capture import Capture, target_width
from eyas.engines.config import ConfigView
from eyas.engines.stop import Refused
from eyas.engines.vllm import claims
from eyas.engines.vllm.conditioning import require_captured
from eyas.engines.vllm.drafter import Drafter
from eyas.spec import Stage

_SLIDING = "sliding_attention"


def as_built(config: ConfigView) -> ConfigView:
    """The config once the model is built, which adds dflash_config to an eagle_config in place.

    vLLM 0.32.0, vllm/model_executor/models/qwen3_dflash.py 451-452: the runner, which asks later,
    then finds an eagle_config that is not empty.
    """
    name = "eagle_config"
    if not isinstance(config.get(name), dict):
        return config
    added = {**config.table(name), **config.table("dflash_config")}
    return replace(config, values={**config.values, name: added})


def require_sliding(drafter: Drafter, runner: str) -> None:
    """Refuse layers of both kinds on the V1 runner, and a sliding one without a window."""
    config, nested = drafter.config, drafter.config.table("dflash_config")
    types = config.get("layer_types")
    kinds = set(types[: drafter.sizes.num_layers.value]) if isinstance(types, list) else set()
    if runner == "v1" and _SLIDING in kinds and len(kinds) > 1:
        raise Refused(
            Stage.CONSTRUCT,
            f"{config.key('layer_types')} has sliding and full layers, which need the V2 runner",
            claims.DFLASH_SLIDING,
        )
    slides = _SLIDING in kinds or bool(nested.get("use_swa"))
    if slides and nested.get("swa_window_size") is None and config.get("sliding_window") is None:
        raise Refused(
            Stage.CONSTRUCT,
            f"{config.key('sliding_window')} is missing, and a layer slides",
            claims.DFLASH_SLIDING,
        )


def require_dflash_width(drafter: Drafter, capture: Capture, target: TargetFacts | None) -> None:
    """Refuse another width of captured states than fc takes."""
    one = target_width(drafter.sizes, target)
    wanted = drafter.count.value * drafter.sizes.target_hidden_size.value
    require_captured(capture, one, wanted, claims.DFLASH_WIDTH)
