"""B6: which states of the target the drafter sees."""

from __future__ import annotations

from collections.abc import Iterator

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.fit import DEFAULT_STATES
from eyas.checks.rules.convention import other_reading
from eyas.checks.rules.fact import cited, remedy, with_source
from eyas.checks.rules.rule import NO_TARGET, TrainedRule, ViewRule
from eyas.checks.view import Trained, View
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
        doubt = other_reading(view.trained)
        if depth is not None:
            try:
                found = boundaries_of(after.value, depth)
                # What is in doubt may lie outside the target, and B602 tells it.
                expected = doubt.usual if doubt else boundaries_of(before.value, depth)
            except TargetError as error:
                yield self.skip(error.message, engine=view.reference)
                return
            if expected == found:
                return
            before, after = before.map(lambda _: expected), after.map(lambda _: found)
        doubtful = doubt is not None and after.value == doubt.other
        unsure = " (or on these: B602 has the reason)" if doubtful else ""
        yield self.finding(
            view,
            severity=Severity.WARNING
            if before.origin is Origin.ASSUMED or doubtful
            else Severity.ERROR,
            place=before.key,
            message=f"{view.engine} captures boundaries {_listed(after.value)};"
            f" the drafter was trained on {_listed(before.value)}{unsure}",
            expected=with_source(before),
            found=with_source(after),
            advice="settle what the ids mean first: eyas explain B602"
            if doubtful
            else remedy(view, after),
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


class IdsDoubtful(TrainedRule):
    """Layer ids that look like those of the other convention.

    What it checks
        Whether the ids, as their key's convention has them, lie outside the target, or would be
        exactly its default boundaries in the other convention. `eagle_config` counts states after
        a layer, the top level counts boundaries (states before one).

    Why it matters
        An engine follows the key. Where the producer did not, fc sees states that are one layer
        off: 0.10 of tau lost on Kimi-K2.5, a first-position rate of 10 % instead of 45 % on
        MiniMax-M2.

    How to fix it
        Ask the trainer which states were captured, or measure acceptance with both; then write the
        ids in the convention of their key.

    Example
        eagle_config with the ids 2, 30, 58 for a target of 61 layers, whose default boundaries
        they are.
    """

    code = "B602"
    name = "ids-doubtful"
    severity = Severity.WARNING
    effect = "fc may see states one layer off (first-position rate 10 % instead of 45 % seen)"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        doubt = other_reading(trained)
        if doubt is None:
            return
        yield self.finding(
            place=doubt.key,
            message=f"the layer ids {_listed(doubt.written)} mean boundaries {_listed(doubt.usual)}"
            f" under their key, and may have been meant as {_listed(doubt.other)}: {doubt.sign}",
            expected=f"boundaries {_listed(doubt.usual)} ({doubt.key})",
            found=f"ids {_listed(doubt.written)}",
            advice="measure acceptance with both, and write the ids in the convention of their key",
        )


class IdsMiscounted(TrainedRule):
    """Another number of layer ids than states in fc.

    What it checks
        Whether the config names as many states as fc is wide; where it names none, whether fc
        takes the three of the default.

    Why it matters
        The engine captures as many states as are named. With another number fc cannot be applied:
        an error at load or at the first request, or one state of the drafter's own width, which
        skips fc in silence.

    How to fix it
        Write one id for each state that fc was trained on.

    Example
        Four ids, and an fc over three states.
    """

    code = "B603"
    name = "ids-miscounted"
    effect = "fc gets another width than it was trained with"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec = trained.spec
        if not isinstance(spec, Eagle3Spec) or not isinstance(spec.conditioning, Fused):
            return
        boundaries, count = spec.conditioning.boundaries, spec.conditioning.count
        named = len(boundaries.value) if isinstance(boundaries.value, tuple) else DEFAULT_STATES
        if named == count.value or count.origin is Origin.ASSUMED:
            return
        yield self.finding(
            place=boundaries.key,
            message=f"fc takes {count.value} states, and the config names"
            f" {with_source(boundaries)}",
            expected=f"{count.value} ids ({count.key})",
            found=f"{named} states",
            advice="write one layer id for each state that fc was trained on",
        )


RULES = (BoundariesShifted(), IdsDoubtful(), IdsMiscounted())
