"""Selection: which rules are to run, by codes, prefixes of codes, or names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eyas.checks.rules import RULES, Rule
from eyas.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rules that run and those that are left out, in the order of RULES."""

    rules: tuple[Rule, ...]
    left_out: tuple[Rule, ...] = ()

    @classmethod
    def parse(cls, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> Selection:
        """The rules that `select` names, all where it is empty, without those of `ignore`.

        A text is a code (``L202``), a prefix of codes (``L2``, ``L``) or a name
        (``layer-dropped``), or several with commas between. Raises UsageError for a text that
        names no rule, with the nearest one, and where nothing is left to run.
        """
        wanted = _chosen(select) or set(RULES)
        wanted -= _chosen(ignore)
        if not wanted:
            raise UsageError(
                "every rule is left out, so that nothing would be checked",
                hint="list the rules with: eyas check --list-rules",
            )
        return cls(
            rules=tuple(rule for rule in RULES if rule in wanted),
            left_out=tuple(rule for rule in RULES if rule not in wanted),
        )


EVERY_RULE = Selection(rules=RULES)


def _chosen(texts: Iterable[str]) -> set[Rule]:
    return {rule for text in _split(texts) for rule in _named(text)}


def _split(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from (part.strip() for part in text.split(",") if part.strip())


def _named(text: str) -> list[Rule]:
    """The rules that one code, prefix or name stands for."""
    from eyas.engines.suggestion import suggestion

    found = [r for r in RULES if r.code.startswith(text.upper()) or r.name == text.lower()]
    if found:
        return found
    families = {rule.code[:2] for rule in RULES}
    known = {t.lower(): t for r in RULES for t in (r.code, r.name)} | {
        f.lower(): f for f in families
    }
    near = suggestion(text, known)
    raise UsageError(
        f"`{text}` is no code, prefix or name of a rule",
        hint=f"did you mean {known[near]}?"
        if near
        else "list the rules with: eyas check --list-rules",
    )
