"""explain(): the text behind a rule's code, and the families that rules come in."""

from __future__ import annotations

import sys

from eyas.checks.rules import RULES, Rule
from eyas.errors import UsageError

HEADINGS = ("What it checks", "Why it matters", "How to fix it", "Example")


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
        hint=f"did you mean {known[near].title}?" if near else "list them with: eyas explain",
    )


def explain(code: str) -> str:
    """What the rule checks, why it matters, how to fix it, and an example."""
    rule = rule_of(code)
    return f"{rule.title} ({rule.severity})\n\n{rule.explanation()}\n"


def family_of(rule: Rule) -> str:
    """What the rules of its file are about: ``L2: which tensors fill which parameters``."""
    module = sys.modules[type(rule).__module__].__doc__ or ""
    return " ".join(module.partition("\n\n")[0].split()).rstrip(".")


def families() -> dict[str, list[Rule]]:
    """The rules by their families, in the order of RULES."""
    found: dict[str, list[Rule]] = {}
    for rule in RULES:
        found.setdefault(family_of(rule), []).append(rule)
    return found
