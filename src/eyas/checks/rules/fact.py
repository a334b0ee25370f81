"""FactRule: a rule that compares one fact, or a few of a kind, of the two views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.rules.rule import ViewRule
from eyas.checks.view import View
from eyas.errors import one_line
from eyas.spec import Claim, DefaultBoundaries, Eagle3Spec, Fact, Origin, Ownership, Rope, VocabMap

LAUNCH = "launch :: "  # the key of a fact that the engine's command line decides


class FactRule(ViewRule):
    """The facts at `facts` are the same as trained and as served.

    `words` find the engine's claim about them. `saying` is the message, with {engine}, {what},
    {trained} and {served} in it.
    """

    facts: ClassVar[tuple[str, ...]]  # paths from Eagle3Spec: "rope", "attention.bias"
    words: ClassVar[tuple[str, ...]]
    both: ClassVar[tuple[str, ...]] = ()  # of them, those compared only where both have a value
    written: ClassVar[bool] = True  # whether another config can state it, for some engine
    saying: ClassVar[str] = "{engine} computes with {what} {served}; trained with {trained}"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        trained, served = view.trained.spec, view.served.spec
        if not isinstance(trained, Eagle3Spec) or not isinstance(served, Eagle3Spec):
            return
        for path in self.facts:
            before, after = fact_at(trained, path), fact_at(served, path)
            if before is None or after is None or before.value == after.value:
                continue
            if path in self.both and None in (before.value, after.value):
                continue
            yield self.difference(view, path, before, after)

    def difference(self, view: View, path: str, before: Fact[Any], after: Fact[Any]) -> Finding:
        """The finding that the fact at `path` is `before` as trained and `after` as served."""
        sure = before.origin is not Origin.ASSUMED
        message = self.saying.format(
            engine=view.engine,
            what=path.rpartition(".")[2],
            trained=spoken(before.value),
            served=spoken(after.value),
        )
        return self.finding(
            view,
            severity=self._severity_of(before, after) if sure else Severity.WARNING,
            place=before.key,
            message=message if sure else f"{message} (assumed: the files do not say)",
            expected=with_source(before),
            found=with_source(after),
            advice=remedy(view, after, written=self.written),
            source=cited(view, *self.words),
        )

    def _severity_of(self, before: Fact[Any], after: Fact[Any]) -> Severity:
        """The severity of a difference between `before` and `after`."""
        return self.severity


def fact_at(spec: Eagle3Spec, path: str) -> Fact[Any] | None:
    """The fact at `path`, or None where the spec is of a kind that has none there."""
    found: object = spec
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, Fact) else None


def spoken(value: object) -> str:
    """`value` as a sentence can hold it."""
    if value is None:
        return "nothing stated"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, DefaultBoundaries):
        return "the default boundaries (2, L//2, L-3)"
    if isinstance(value, tuple):
        return "boundaries " + ", ".join(map(str, value))
    if isinstance(value, frozenset):
        return "layers " + ", ".join(map(str, sorted(value))) if value else "no layer"
    if isinstance(value, Ownership):
        return {
            Ownership.OWN: "the drafter's own",
            Ownership.TARGET: "the target's",
            Ownership.TIED: "the drafter's tied",
        }[value]
    if isinstance(value, VocabMap):
        return {
            VocabMap.IDENTITY: "the identity",
            VocabMap.OFFSETS: "d2t offsets",
            VocabMap.ABSOLUTE: "absolute d2t ids",
            VocabMap.PREFIX: "no map of draft ids (id i is taken for target id i)",
        }[value]
    if isinstance(value, Rope):
        numbers = "".join(f", {name} {number}" for name, number in value.scaling.items())
        kind = "unscaled" if value.kind == "default" else value.kind
        return one_line(f"theta {value.theta:g}, {kind}{numbers}")
    return one_line(str(value))


def with_source(fact: Fact[Any]) -> str:
    """A fact's value with where it came from."""
    if fact.origin is Origin.ASSUMED and not fact.key.startswith(LAUNCH):
        return f"{spoken(fact.value)} ({fact.key} is absent: default of {fact.whose})"
    if fact.origin is Origin.ABSENT:
        return f"{spoken(fact.value)} ({fact.key} is absent)"
    return f"{spoken(fact.value)} ({fact.key})"


def remedy(view: View, served: Fact[Any], *, written: bool = True) -> str:
    """What to type about a fact that is served otherwise than trained."""
    if served.key.startswith(LAUNCH):
        return f"launch with {_sound(view, served.key.removeprefix(LAUNCH))}"
    return view.remedy(view.elsewhere, likely=written)


def _sound(view: View, option: str) -> str:
    """``option=value`` with the value that serves an EAGLE-3 drafter as trained."""
    from eyas.engines.catalogue import engine_named

    engine = engine_named(view.served.engine)
    keys = () if engine is None else engine.launch_keys
    value = next((key.sound for key in keys if key.name == option), None)
    return option if value is None else f"{option}={value}"


def source_of(view: View, claim: Claim) -> str:
    """Where `claim` is read, and that this is another version than the one that serves."""
    served = view.served
    if served.engine != claim.project or served.version == claim.version:
        return claim.citation
    return f"{claim.citation} (read in {claim.version}, held to be the same in {served.version})"


def cited(view: View, *words: str) -> str | None:
    """Where the engine's claims about a fact are read: the first claim with each of `words`."""
    found: dict[str, None] = {}
    for word in words:
        claim = next((c for c in view.served.claims if word in c.text.casefold()), None)
        if claim is not None:
            found[source_of(view, claim)] = None
    return "; ".join(found) or None
