"""Change: another reading of the same files, and what it would mean if it drafts better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from eyas.diagnose.causes import CauseId
from eyas.diagnose.difference import Difference
from eyas.diagnose.variant import Variant
from eyas.spec import Fused, inferred

KEY = "diagnose"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A candidate: `what` says what it has instead; facets and roles are those it touches.

    `proven` by the matrices themselves, whether or not it brings tau back.
    """

    cause: CauseId
    what: str
    variant: Variant
    facets: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    proven: bool = False

    @property
    def undoing(self) -> Difference:
        """The part that takes it back."""
        return Difference(cause=self.cause, what=self.what, facets=self.facets, roles=self.roles)


def with_facts(variant: Variant, **values: Any) -> Variant:
    """`variant` with some fields of its spec replaced by inferred facts."""
    facts: dict[str, Any] = {name: inferred(value, KEY) for name, value in values.items()}
    return replace(variant, spec=replace(variant.spec, **facts))


def with_fusion(variant: Variant, fused: Fused, **values: Any) -> Variant:
    """`variant` with some facts of its fusion replaced by inferred ones."""
    facts = {name: inferred(value, KEY) for name, value in values.items()}
    return replace(variant, spec=replace(variant.spec, conditioning=replace(fused, **facts)))
