"""What llama.cpp asserts of an eagle3 file's numbers while it reads them: else it aborts."""

from __future__ import annotations

from collections.abc import Mapping

from eyas.checkpoint import Checkpoint
from eyas.engines.llamacpp import claims
from eyas.engines.llamacpp.key_types import EACH, PREFIX
from eyas.engines.stop import NotCovered, Refused
from eyas.spec import Claim, Stage

_MOST_LAYERS, _MOST_EXPERTS = 512, 1024
_SCALINGS = ("none", "linear", "yarn", "longrope")


def require_limits(checkpoint: Checkpoint) -> None:
    """Refuse numbers that abort the reading; NotCovered for a file in several parts."""
    limits = _Limits(checkpoint)
    layers = limits.number("block_count")
    if not 0 < layers <= _MOST_LAYERS:
        raise limits.aborted("block_count", f"is {layers}, beyond 1 to {_MOST_LAYERS}")
    if limits.number("nextn_predict_layers") > layers:
        raise limits.aborted("nextn_predict_layers", f"is more than block_count {layers}")
    for name in EACH:
        value = limits.raw.get(PREFIX + name)
        if isinstance(value, list) and len(value) != layers:
            raise limits.aborted(
                name, f"has {len(value)} entries for {layers} layers", claims.KEY_TYPES
            )
    _require_experts(limits)
    scaling = limits.raw.get(f"{PREFIX}rope.scaling.type", "linear")
    if scaling not in _SCALINGS:
        raise limits.aborted("rope.scaling.type", f"is {scaling!r}, which llama.cpp does not know")
    if limits.raw.get("split.count", 0) not in (0, 1):
        raise NotCovered(f"{checkpoint.config_file} is one of several parts")


class _Limits:
    """The keys of a file, and the refusals for them."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.raw: Mapping[str, object] = checkpoint.config
        self.file = checkpoint.config_file

    def number(self, name: str) -> int:
        """The number at a key, 0 where it is absent; of a list the largest."""
        value = self.raw.get(PREFIX + name, 0)
        if isinstance(value, list):
            return max(map(int, value), default=0)
        return value if isinstance(value, int) else 0

    def aborted(self, name: str, what: str, claim: Claim = claims.LIMITS) -> Refused:
        return Refused(Stage.CONFIG, f"{self.file} :: {PREFIX}{name} {what}", claim)


def _require_experts(limits: _Limits) -> None:
    """The counts of a mixture of experts, which the class does not have, must still agree."""
    experts, used = limits.number("expert_count"), limits.number("expert_used_count")
    groups, of_them = limits.number("expert_group_count"), limits.number("expert_group_used_count")
    if experts > _MOST_EXPERTS:
        raise limits.aborted("expert_count", f"is {experts}, more than {_MOST_EXPERTS}")
    if used > experts or (experts and not used):
        raise limits.aborted("expert_used_count", f"is {used} of {experts} experts")
    if groups and groups >= experts:
        raise limits.aborted("expert_group_count", f"is {groups} for {experts} experts")
    if groups > 1 and (experts % groups or not 0 < of_them < groups):
        raise limits.aborted("expert_group_count", f"is {groups}, of which {of_them} are used")
