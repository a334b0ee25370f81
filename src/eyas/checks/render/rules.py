"""The list of rules: a table for a reader, an object for a program, a page for the docs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from eyas.__about__ import __version__
from eyas.checks.explain import HEADINGS, families, family_of
from eyas.checks.render.columns import columns
from eyas.checks.report import SCHEMA_VERSION
from eyas.checks.rules import Rule

_BEGINNING = """\
# The rules of `eyas check`

A finding has the code of its rule. Codes are stable and never used for anything else. What is below
is also what `eyas explain CODE` prints; `eyas check --select` and `--ignore` take codes, their
beginnings (`L2`) and names. This page is written by `python scripts/rules_page.py`.
"""


def render_human(rules: Iterable[Rule]) -> str:
    """Code, name, severity and first line of each rule, in columns."""
    rows = [[r.code, r.name, r.severity.value, r.explanation().splitlines()[0]] for r in rules]
    return columns(rows, indent="") + "\n"


def render_json(rules: Iterable[Rule]) -> str:
    """The same as one JSON object, with the whole explanations."""
    return (
        json.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "tool": {"name": "eyas", "version": __version__},
                "rules": [
                    {
                        "code": rule.code,
                        "name": rule.name,
                        "severity": rule.severity.value,
                        "family": family_of(rule),
                        "summary": rule.explanation().splitlines()[0],
                        "effect": rule.effect,
                        "explanation": rule.explanation(),
                    }
                    for rule in rules
                ],
            },
            indent=2,
        )
        + "\n"
    )


def page() -> str:
    """docs/rules.md: every rule with its explanation, family by family."""
    parts = [_BEGINNING]
    for family, rules in families().items():
        parts.append(f"## {family}\n")
        parts += [f"- [{rule.title}](#{_anchor(rule)})" for rule in rules]
        parts.append("")
        for rule in rules:
            parts += _section(rule)
    return "\n".join(parts).rstrip("\n") + "\n"


def _section(rule: Rule) -> Iterator[str]:
    first, *rest = rule.explanation().splitlines()
    yield f"### {rule.title}"
    yield f"*{rule.severity}* · {_escaped(first)}"
    for line in rest:
        heading = line.strip() if line.strip() in HEADINGS else None
        yield f"**{heading}.**" if heading else _escaped(line.removeprefix("    "))
    yield f"\nEffect: {_escaped(rule.effect)}.\n"


def _escaped(text: str) -> str:
    """`text` with what Markdown would take for markup shown as it is; code stays code."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*<])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def _anchor(rule: Rule) -> str:
    """The anchor that GitHub gives the heading of `rule`."""
    return rule.title.lower().replace(" ", "-")
