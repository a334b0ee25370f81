"""Capture: the states of the target that an engine hands to a drafter."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.checkpoint import TargetFacts
from eyas.engines.config import ConfigView
from eyas.engines.sizes import Sizes
from eyas.spec import (
    Boundaries,
    Claim,
    Eagle3Spec,
    Fact,
    FromTarget,
    Ownership,
    assumed,
    declared,
)

USUAL_STATES = 3  # both engines capture as many where no config says otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """The boundaries in capture order, how many of them the target really hands over, and why."""

    boundaries: Fact[Boundaries]
    count: int
    claims: tuple[Claim, ...]


def default_count(layers: int | None) -> int:
    """How many different states the default boundaries are in a target of `layers` layers."""
    return USUAL_STATES if layers is None else len({2, layers // 2, layers - 3})


def expected_count(config: ConfigView) -> Fact[int]:
    """The number of states that fc is sized for: never from the top-level ids."""
    name = "num_aux_hidden_states"
    if config.get(name) is not None:
        return config.whole(name)
    ids = config.table("eagle_config").get("eagle_aux_hidden_state_layer_ids")
    if isinstance(ids, list) and ids:
        return declared(len(ids), config.key("eagle_config.eagle_aux_hidden_state_layer_ids"))
    return assumed(USUAL_STATES, config.key(name), whose=config.whose)


def uses_states(config: ConfigView) -> Fact[bool]:
    """Whether the target hands over captured states, as it does unless eagle_config says no."""
    name = "use_aux_hidden_state"
    key = config.key(f"eagle_config.{name}")
    return nested_flag(config, name) or assumed(True, key, whose=config.whose)


def nested_flag(config: ConfigView, name: str) -> Fact[bool] | None:
    """A switch of eagle_config, or None where it is not there."""
    nested = config.table("eagle_config")
    if name not in nested:
        return None
    return declared(bool(nested[name]), config.key(f"eagle_config.{name}"))


def target_width(sizes: Sizes, target: TargetFacts | None) -> int:
    """The width of one state: the target's where it is known, else what the drafter says."""
    if target is not None and target.hidden_size is not None:
        return target.hidden_size
    return sizes.target_hidden_size.value


def replaced_by_target(spec: Eagle3Spec, *, tied: bool = False) -> dict[str, FromTarget]:
    """The parameters that are overwritten with the target's after loading."""
    replaced = {}
    if spec.embedding.value is Ownership.TARGET:
        replaced["model.embed_tokens.weight"] = FromTarget(what="embed_tokens.weight")
    if spec.head.value is Ownership.TARGET and not tied:
        replaced["lm_head.weight"] = FromTarget(what="lm_head.weight")
    return replaced
