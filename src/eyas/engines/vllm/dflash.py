"""Where a DFlash drafter makes vLLM raise although its tensors land."""

from __future__ import annotations

from eyas.checkpoint import TargetFacts
from eyas.engines.capture import Capture, target_width
from eyas.engines.stop import Refused
from eyas.engines.vllm import claims
from eyas.engines.vllm.conditioning import require_captured
from eyas.engines.vllm.drafter import Drafter
from eyas.spec import Stage

_SLIDING = "sliding_attention"


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
