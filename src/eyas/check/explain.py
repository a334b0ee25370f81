"""explain(): the text behind a rule's code."""

from __future__ import annotations

from eyas.check.rules import RULES, Rule
from eyas.errors import UsageError


def rule_of(code: str) -> Rule:
    """The rule with this code or name; raises UsageError with the nearest one for a typo."""
    from eyas.engines.suggestion import suggestion

    wanted = code.strip().casefold()
    for rule in RULES:
        if wanted in (rule.code.casefold(), rule.name):
            return rule
    known = {name: rule for rule in RULES for name in (rule.code.casefold(), rule.name)}
    near = suggestion(wanted, known)
    raise UsageError(
        f"`{code}` is no rule of eyas",
        hint=f"did you mean {known[near].code} {known[near].name}?"
        if near
        else "list them with: eyas explain",
    )


def explain(code: str) -> str:
    """What the rule checks, why it matters, how to fix it, and an example."""
    rule = rule_of(code)
    return f"{rule.code} {rule.name} ({rule.severity})\n\n{rule.explanation()}\n"
