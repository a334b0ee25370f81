"""A drafter run as an engine has it, and the parts in which that differs from the files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from eyas.checkpoint import Checkpoint
from eyas.diagnose.ablation import Part
from eyas.diagnose.bench import Bench
from eyas.diagnose.chains import Chains, chains
from eyas.diagnose.difference import Difference, Fillings, by_cause, differences
from eyas.diagnose.reading import as_served, neutral
from eyas.diagnose.variant import Variant, built, in_dtype
from eyas.errors import EngineError, TargetError, UnsupportedError
from eyas.model.served import Fill
from eyas.spec import Eagle3Spec, Initialisation, Landing, Served, Unfilled

FILL = Fill.NORMAL  # what the ablation puts where nothing is loaded


@dataclass(slots=True, kw_only=True)
class ServedRun:
    """What came of it: `runs` has the chains of each fill that memory may hold, by a label.

    `variant` is the one of the first. Where none could be run, `refusal` or `note` says why, and
    `parts` are those that can be told without.
    """

    variant: Variant | None = None
    runs: dict[str, Chains] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    refusal: str | None = None
    note: str | None = None

    @property
    def chains(self) -> Chains | None:
        """What is accepted with the first fill."""
        return next(iter(self.runs.values()), None)


def serve(
    view: Served, label: str, checkpoint: Checkpoint, bench: Bench, start: Variant, steps: int
) -> ServedRun:
    """`checkpoint` as `view` has it; `start` is what its files declare, `label` the engine."""
    outcome = ServedRun()
    if view.refusal is not None:
        outcome.refusal = f"{label} stops at {view.refusal.stage}: {view.refusal.message}"
    if view.refusal is not None or view.landing is None:
        return outcome
    chance = _left_to_chance(view.landing)
    for fill in (FILL, *(other for other in Fill if other is not FILL)) if chance else (FILL,):
        try:
            variant = as_served(view, checkpoint, bench.target, fill)
            found = chains(built(variant, bench.target), bench.evidence, steps, every=True)
        except (EngineError, TargetError) as error:
            outcome.refusal, outcome.parts = error.message, _unrun(view, start, bench)
            return outcome
        except UnsupportedError as error:
            outcome.note = f"as served it cannot be run: {error.message}"
            outcome.parts = _unrun(view, start, bench)
            return outcome
        name = f"as served by {label}" + (f", memory filled with {fill}" if chance else "")
        outcome.runs[name] = found
        outcome.variant = outcome.variant or variant
    assert outcome.variant is not None  # at least one fill was run
    found_parts = differences(start, outcome.variant, bench.target, view.landing)
    outcome.parts = tuple(
        Part(
            difference=part,
            source=outcome.variant,
            engine=True,
            unwritten=bool(part.roles & chance),
        )
        for part in found_parts
    )
    return outcome


def _left_to_chance(landing: Landing) -> frozenset[str]:
    """The roles that hold what memory or a random generator happened to leave there."""
    chance = (Initialisation.MEMORY, Initialisation.RANDOM)
    return frozenset(
        segment.role or parameter.name
        for parameter in landing.unfilled
        for segment in parameter.segments
        if isinstance(segment.source, Unfilled) and segment.source.initialisation in chance
    )


def _unrun(view: Served, start: Variant, bench: Bench) -> tuple[Part, ...]:
    """The differences of a drafter that cannot be run as served: facets, and what is lost.

    What is lost is priced as the best that memory may hold: zeros, and norms that do nothing.
    """
    if not isinstance(view.spec, Eagle3Spec) or view.landing is None:
        return ()
    other = Variant(spec=view.spec, state=start.state)
    found: tuple[Difference, ...] = ()
    with suppress(TargetError):  # boundaries that the target does not have: the refusal says so
        found = differences(start, other, bench.target)
    lost = Fillings.of(view.landing).unfilled & start.state.keys()
    chance = _left_to_chance(view.landing)
    holes = {role: neutral(role, tuple(start.state[role].shape)) for role in lost}
    emptied = start.with_state(in_dtype(holes, bench.target))
    return (
        *(Part(difference=part, source=other, engine=True) for part in found),
        *(
            Part(
                difference=part,
                source=emptied,
                engine=True,
                unwritten=bool(part.roles & chance),
            )
            for part in by_cause(lost, start.state)
        ),
    )
