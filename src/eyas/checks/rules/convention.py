"""What else a drafter's layer ids can mean, where the files point away from their key's convention.

A key has one convention (`dialects/` translates it), but producers put ids of the other one under
it: Kimi-K2.5's drafters keep boundaries in `eagle_config`, whose ids count states after a layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eyas.checks.view import Trained
from eyas.errors import TargetError
from eyas.spec import DefaultBoundaries, Eagle3Spec, Fused, Origin, boundaries_of


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherReading:
    """The layer ids as `written` under `key`, the boundaries of its convention, and the others."""

    key: str
    written: tuple[int, ...]
    usual: tuple[int, ...]
    other: tuple[int, ...]
    sign: str  # what points to `other`


def other_reading(trained: Trained) -> OtherReading | None:
    """The boundaries that the ids are in the other convention, where something points to it."""
    spec, target = trained.spec, trained.target
    if not isinstance(spec, Eagle3Spec) or not isinstance(spec.conditioning, Fused):
        return None
    fact = spec.conditioning.boundaries
    depth = None if target is None else target.num_layers
    if depth is None or fact.origin is not Origin.DECLARED or not isinstance(fact.value, tuple):
        return None
    written, usual = _written(trained, fact.key), fact.value
    counts_after = tuple(k - 1 for k in usual) == written
    if not written or not (counts_after or usual == written):
        return None
    other = written if counts_after else tuple(k + 1 for k in written)
    sign = _sign(usual, other, depth)
    if sign is None:
        return None
    return OtherReading(key=fact.key, written=written, usual=usual, other=other, sign=sign)


def _sign(usual: tuple[int, ...], other: tuple[int, ...], depth: int) -> str | None:
    """What points to `other` in a target of `depth` layers, if anything does."""
    if max(other) <= depth < max(usual):
        return f"the target has no boundary {max(usual)}, only 0 to {depth}"
    try:
        default = boundaries_of(DefaultBoundaries(), depth)
    except TargetError:
        return None
    if other == default != usual:
        return f"they would then be the default of a target with {depth} layers"
    return None


def _written(trained: Trained, key: str) -> tuple[int, ...]:
    """The ids under `key` (``config.json :: eagle_config.ids``), untranslated."""
    value: object = trained.checkpoint.config
    for part in key.partition(" :: ")[2].split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return tuple(value) if isinstance(value, list) else ()
