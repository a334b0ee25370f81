"""The rules: one file for each family, one class for each rule."""

from __future__ import annotations

from eyas.checks.rules import (
    arithmetic,
    boundaries,
    config,
    files,
    fusion,
    identity,
    landing,
    maps,
    method,
    placement,
    positions,
    target,
    values,
    vocabulary,
)
from eyas.checks.rules.rule import NO_TARGET, Rule, TrainedRule, ViewRule

_FAMILIES = (
    config,
    files,
    landing,
    placement,
    fusion,
    vocabulary,
    maps,
    arithmetic,
    positions,
    boundaries,
    target,
    identity,
    method,
    values,
)
RULES: tuple[Rule, ...] = tuple(rule for family in _FAMILIES for rule in family.RULES)

__all__ = ["NO_TARGET", "RULES", "Rule", "TrainedRule", "ViewRule"]
