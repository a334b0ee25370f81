"""The states that vLLM captures in the target, as boundaries."""

from __future__ import annotations

from eyas.checkpoint import TargetFacts
from eyas.engines.capture import Capture, default_count
from eyas.engines.config import ConfigView, layer_ids
from eyas.engines.stop import NotCovered
from eyas.engines.vllm import claims
from eyas.engines.vllm.targets import by_transformers
from eyas.spec import Boundaries, DefaultBoundaries, Fact, assumed, declared

_TOP = "eagle_aux_hidden_state_layer_ids"


def capture_of(config: ConfigView, runner: str, target: TargetFacts | None) -> Capture:
    """What `runner` captures for a drafter with this config."""
    layers = None if target is None else target.num_layers
    reason = claims.IDS_V1 if runner == "v1" else claims.IDS_V2
    found = configured_ids(config, runner)
    if found is None:
        count = default_count(layers)
        default: Fact[Boundaries] = assumed(
            DefaultBoundaries(), config.key(_TOP), whose=config.whose
        )
        return Capture(boundaries=default, count=count, claims=(reason, claims.DEFAULT_IDS))
    ids, key = found
    wanted = tuple(sorted(set(ids)))
    if by_transformers(target) and (ids != wanted or 0 in ids):
        raise NotCovered(
            f"{key} is {list(ids)}, and eyas has not read what vLLM's Transformers backend, which"
            " serves this target, captures for ids that are unsorted, twice there or 0"
        )
    captured = wanted if layers is None else tuple(k for k in wanted if 0 <= k <= layers)
    return Capture(
        boundaries=declared(captured, key),
        count=len(captured),
        claims=(reason, claims.SORTED_IDS),
    )


def configured_ids(config: ConfigView, runner: str) -> tuple[tuple[int, ...], str] | None:
    """The ids that the runner finds, as boundaries, and where."""
    top = config.ids(_TOP)
    if top is not None:
        return top, config.key(_TOP)
    shifted = _nested(config, "dflash_config", "target_layer_ids", 1)
    if runner == "v1":
        # An eagle_config decides alone, even where it has no ids.
        if config.table("eagle_config"):
            return _nested(config, "eagle_config", _TOP, 0)
        return shifted
    after = config.ids("target_layer_ids")
    return (
        shifted
        or (after and (tuple(i + 1 for i in after), config.key("target_layer_ids")))
        or _nested(config, "dflash_config", "layer_ids", 0)
        or _nested(config, "eagle_config", "layer_ids", 0)
    )


def _nested(
    config: ConfigView, table: str, name: str, shift: int
) -> tuple[tuple[int, ...], str] | None:
    key = config.key(f"{table}.{name}")
    ids = layer_ids(config.table(table).get(name), key, config.stop)
    return None if ids is None else (tuple(i + shift for i in ids), key)
