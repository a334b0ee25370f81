"""Each rule is explained, and every fact of a drafter is compared by one."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from eyas.checks import RULES, explain, rule_of
from eyas.checks.rules.fact import FactRule
from eyas.errors import UsageError
from eyas.spec import Eagle3Spec, Fused, LastState, Mha, Mla, Unfused

HEADINGS = ("What it checks", "Why it matters", "How to fix it", "Example")

# Compared by rules of their own (B601, F301, F302), or no part of the arithmetic. Which side of the
# target's final norm the last state is taken from is the same in every dialect and engine so far.
ELSEWHERE = {
    "conditioning.boundaries",
    "conditioning.reason",
    "conditioning.after_final_norm",
    "target_name",
    "vocab_order",  # changes no draft
}


def test_codes_and_names_are_unique() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES)
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_explains_itself(rule: object) -> None:
    text = explain(rule.code)  # type: ignore[attr-defined]
    positions = [text.index(f"\n{heading}\n") for heading in HEADINGS]
    assert positions == sorted(positions)
    assert re.fullmatch(r"[A-Z]\d{3}", rule.code)  # type: ignore[attr-defined]


def test_every_fact_is_compared() -> None:
    paths = {field.name for field in fields(Eagle3Spec)} - {"attention", "conditioning"}
    paths |= {f"attention.{field.name}" for kind in (Mha, Mla) for field in fields(kind)}
    paths |= {
        f"conditioning.{f.name}" for kind in (Fused, LastState, Unfused) for f in fields(kind)
    }
    compared = {path for rule in RULES if isinstance(rule, FactRule) for path in rule.facts}
    assert paths - compared == ELSEWHERE
    assert compared <= paths


def test_a_rule_is_found_by_code_and_by_name() -> None:
    assert rule_of("l202") is rule_of("layer-dropped")


def test_a_typo_gets_the_nearest_rule() -> None:
    with pytest.raises(UsageError, match="L202 layer-dropped"):
        explain("L20 2")
