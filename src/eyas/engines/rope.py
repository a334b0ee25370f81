"""RoPE as an engine takes it from a draft config."""

from __future__ import annotations

from collections.abc import Mapping

from eyas.engines.config import ConfigView
from eyas.engines.stop import NotCovered
from eyas.spec import Fact, Rope, assumed, declared

_DEFAULT_THETA = 10000.0  # transformers' LlamaConfig, and both engines' own fallback


def rope_of(
    config: ConfigView, *, reads_rope_parameters: bool, default_theta: float | None = None
) -> Fact[Rope]:
    """The rotary embedding; raises NotCovered for one RoPE per layer type.

    `default_theta` is the base of an engine whose own default is not 10000.

    `rope_parameters` is the spelling of transformers 5 and unknown to transformers 4. Where both
    spellings are there, transformers 5 takes `rope_scaling` (configuration_utils of 5.24.0, run).
    """
    name, table = "rope_scaling", config.get("rope_scaling")
    if not table and reads_rope_parameters:
        name, table = "rope_parameters", config.get("rope_parameters")
    if not isinstance(table, Mapping):
        name, table = "rope_theta", {}
    if any(isinstance(value, Mapping) for value in table.values()):
        raise NotCovered(
            f"{config.key(name)} holds one RoPE for each layer type, which this version of eyas"
            " does not read"
        )
    theta = table.get("rope_theta")
    key = config.key(name)
    if theta is None:
        theta, key = config.get("rope_theta"), config.key("rope_theta")
    if theta is not None and (isinstance(theta, bool) or not isinstance(theta, int | float)):
        raise config.stop(f"{key} is {theta!r} where a number is needed")
    default = _DEFAULT_THETA if default_theta is None else default_theta
    rope = Rope.of_table(default if theta is None else float(theta), table)
    if theta is None:
        return assumed(rope, config.key("rope_theta"), whose=config.whose)
    return declared(rope, config.key(name) if table else key)
