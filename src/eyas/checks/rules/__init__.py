"""The rules: one file for each family, one class for each rule."""

from __future__ import annotations

from eyas.checks.rules import (
    arithmetic,
    boundaries,
    config,
    fusion,
    landing,
    target,
    values,
    vocabulary,
)
from eyas.checks.rules.rule import NO_TARGET, Rule, TrainedRule, ViewRule

RULES: tuple[Rule, ...] = (
    *config.RULES,
    *landing.RULES,
    *fusion.RULES,
    *vocabulary.RULES,
    *arithmetic.RULES,
    *boundaries.RULES,
    *target.RULES,
    *values.RULES,
)

__all__ = ["NO_TARGET", "RULES", "Rule", "TrainedRule", "ViewRule"]
