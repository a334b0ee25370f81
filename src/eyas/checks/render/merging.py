"""Findings that differ in nothing but the engine, shown as one."""

from __future__ import annotations

from collections.abc import Iterable

from eyas.checks.finding import Finding


def merged(findings: Iterable[Finding]) -> list[list[Finding]]:
    """`findings`, those together that differ in nothing but the engine."""
    groups: dict[tuple[str | None, ...], list[Finding]] = {}
    for found in findings:
        texts = (found.place, found.message, found.expected, found.found, found.effect, found.help)
        key = (found.code, *(_without_engine(text, found) for text in texts))
        groups.setdefault(key, []).append(found)
    return list(groups.values())


def evidence(found: Finding) -> str:
    """What was expected, where that can be said, and what was found."""
    return (
        found.found if found.expected is None else f"expected {found.expected}; found {found.found}"
    )


def others(group: list[Finding]) -> str | None:
    """The engines of a group besides the one that is shown; None where there is no other."""
    labels = [other.label for other in group[1:] if other.label]
    return ", ".join(labels) if labels else None


def _without_engine(text: str | None, found: Finding) -> str | None:
    if text is None or found.version is None:
        return text
    return text.replace(found.version, "VERSION").replace(f":{found.runner}", "")
