"""B6: which states of the target the drafter sees."""

from __future__ import annotations

from collections.abc import Iterator

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.rules.fact import cited, remedy, with_source
from eyas.checks.rules.rule import NO_TARGET, ViewRule
from eyas.checks.view import View
from eyas.errors import TargetError
from eyas.spec import (
    Boundaries,
    DefaultBoundaries,
    Eagle3Spec,
    Fact,
    Fused,
    Origin,
    Unfused,
    boundaries_of,
)

WORDS = ("layer_ids", "without ids", "default layer")  # of the engine's claims about them


class BoundariesShifted(ViewRule):
    """Other states of the target than trained.

    What it checks
        Whether the engine captures the same boundaries of the target. Boundary k is the residual
        stream entering decoder layer k. "After layer k" of one tool is "before layer k+1" of
        another, and where the ids stand in the config decides who reads them.

    Why it matters
        fc was trained on other states. Ids off by one took the first-position rate from 45 % to
        10 % (MiniMax-M2) or cost 0.10 of tau (Kimi); ids not read at all gave 1.036 instead of
        2.77.

    How to fix it
        Write the ids where this engine reads them, in its convention: eyas convert does.

    Example
        speculators writes eagle_aux_hidden_state_layer_ids at the top level; SGLang reads only
        those inside eagle_config, and takes its default.
    """

    code = "B601"
    name = "boundaries-shifted"
    effect = "fc sees other states than trained (first-position rate 10 % instead of 45 % seen)"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        pair = _boundaries(view)
        if pair is None:
            return
        before, after = pair
        if _depends_on_architecture(view, after):
            yield self.skip(
                f"{NO_TARGET}: what the layer ids mean depends on its architecture",
                engine=view.reference,
            )
            return
        if before.value == after.value:
            return
        depth = None if view.trained.target is None else view.trained.target.num_layers
        if depth is None and _has_default(before, after):
            if before.origin is Origin.DECLARED:
                yield self._unread(view, before, after)
            yield self.skip(
                f"{NO_TARGET}: the default boundaries depend on its depth", engine=view.reference
            )
            return
        if depth is not None:
            try:
                expected = boundaries_of(before.value, depth)
                found = boundaries_of(after.value, depth)
            except TargetError as error:
                yield self.skip(error.message, engine=view.reference)
                return
            if expected == found:
                return
            before, after = before.map(lambda _: expected), after.map(lambda _: found)
        yield self.finding(
            view,
            severity=Severity.WARNING if before.origin is Origin.ASSUMED else Severity.ERROR,
            place=before.key,
            message=f"{view.engine} captures boundaries {_listed(after.value)};"
            f" the drafter was trained on {_listed(before.value)}",
            expected=with_source(before),
            found=with_source(after),
            advice=remedy(view, after),
            source=cited(view, *WORDS),
        )

    def _unread(self, view: View, before: Fact[Boundaries], after: Fact[Boundaries]) -> Finding:
        """The finding that declared ids are not used, of a target whose depth is not known."""
        return self.finding(
            view,
            severity=Severity.WARNING,
            place=before.key,
            message=f"{view.engine} does not use the declared boundaries {_listed(before.value)}:"
            f" it captures its default {_listed(after.value)},"
            " which are others unless the target's depth makes them the same",
            expected=with_source(before),
            found=with_source(after),
            advice=remedy(view, after),
            source=cited(view, *WORDS),
        )


def _depends_on_architecture(view: View, after: Fact[Boundaries]) -> bool:
    """Whether the engine reads the ids otherwise for some targets, and this one is not known."""
    target = view.trained.target
    known = target is not None and bool(target.architectures)
    return not known and after.origin is Origin.ASSUMED and isinstance(after.value, tuple)


def _boundaries(view: View) -> tuple[Fact[Boundaries], Fact[Boundaries]] | None:
    """The boundaries of both sides, where both capture."""
    trained, served = view.trained.spec, view.served.spec
    if not isinstance(trained, Eagle3Spec) or not isinstance(served, Eagle3Spec):
        return None
    before, after = trained.conditioning, served.conditioning
    if not isinstance(before, Fused) or not isinstance(after, Fused | Unfused):
        return None
    return before.boundaries, after.boundaries


def _has_default(*facts: Fact[Boundaries]) -> bool:
    return any(isinstance(fact.value, DefaultBoundaries) for fact in facts)


def _listed(boundaries: Boundaries) -> str:
    if isinstance(boundaries, DefaultBoundaries):
        return "(2, L//2, L-3)"
    return ", ".join(map(str, boundaries))


RULES = (BoundariesShifted(),)
