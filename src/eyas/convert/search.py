"""Search: the first way of writing a drafter in which its goal reads what was trained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from eyas.checkpoint import Format
from eyas.checkpoint.header import TORCH_NAMES
from eyas.checks import Trained, as_trained
from eyas.convert.edits.boundaries import with_default_boundaries, with_stated_boundaries
from eyas.convert.edits.maps import with_mask, with_sorted_offsets, without_mask
from eyas.convert.edits.ownership import (
    has_targets_embedding,
    with_own_embedding,
    with_own_head,
)
from eyas.convert.goal import DialectGoal, Goal
from eyas.convert.material import Material, is_weight, material_of
from eyas.convert.objection import Objection, refusal
from eyas.convert.plan import Plan, planned
from eyas.convert.recheck import objections
from eyas.convert.wishes import NO_WISHES, Wishes
from eyas.convert.writers import FOR_ENGINES, Writer, writers_of
from eyas.dialects import WRITABLE
from eyas.engines import require_covered
from eyas.engines.catalogue import engine_named
from eyas.errors import ConversionError
from eyas.spec import Eagle3Spec

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts
    from eyas.engines import Launch


_COPIED = "the engine uses the target's embedding, whose numbers the drafter's own has"


def search(
    checkpoint: Checkpoint,
    goal: Goal,
    *,
    target: TargetFacts | None = None,
    launch: Launch | None = None,
    wishes: Wishes = NO_WISHES,
) -> Plan:
    """The first way of writing `checkpoint` in which `goal` computes what was trained.

    For an engine every writer of a format that it takes is tried, those of the drafter's own
    dialect first, and what its contract makes of each is compared with the drafter as trained. Then
    they are tried once more with the layer ids, the head or the embedding stored otherwise.
    Raises EngineError for an engine or version that eyas does not know, and ConversionError with
    all that stands in the way when there is no such way.
    """
    if not isinstance(goal, DialectGoal):
        require_covered(goal)
    trained = as_trained(checkpoint, target=target)
    if not isinstance(goal, DialectGoal) and not isinstance(trained.spec, Eagle3Spec):
        raise ConversionError(
            f"{checkpoint.location} cannot be shown to be exact on {goal}: {trained.spec.unjudged}",
            hint=f"name a dialect to convert it to: {', '.join(WRITABLE)}",
        )
    material = wishes.granted(with_sorted_offsets(material_of(trained)), target)
    against: list[list[Objection]] = []
    unwritten: list[ConversionError] = []
    for form in _forms(material, target):
        for writer in _writers(trained, goal):
            try:
                candidate = _candidate(trained, form, writer, goal)
            except ConversionError as error:
                unwritten.append(error)
                continue
            found = objections(candidate.spec, target, candidate.imagined(), goal, launch)
            if found and all(objection.replaced for objection in found):
                copied = has_targets_embedding(form, target)
                if copied:
                    return replace(candidate, copied=True, changes=(*candidate.changes, _COPIED))
                found = [replace(o, needs_target=copied is None) for o in found]
            if not found:
                return candidate
            against.append(found)
    if not against and not unwritten:
        raise ConversionError(f"eyas writes nothing that {goal} reads")
    raise refusal(trained.checkpoint.location, against, unwritten, goal)


def _writers(trained: Trained, goal: Goal) -> list[Writer]:
    if isinstance(goal, DialectGoal):
        return list(writers_of(goal.name))
    engine = engine_named(goal.name)
    takes_gguf = engine is not None and engine.reads_gguf
    fitting = [w for w in FOR_ENGINES if (w.form is Format.GGUF) is takes_gguf]
    return sorted(fitting, key=lambda writer: writer.dialect != trained.dialect)


def _forms(material: Material, target: TargetFacts | None) -> Iterator[Material]:
    """`material`, and then the same drafter with other facts stated or stored."""
    stated = [edit(material, target) for edit in (with_stated_boundaries, with_default_boundaries)]
    bases = [material, *(other for other in stated if other is not None)]
    yield from bases
    for edits in ((with_own_head,), (with_own_embedding,), (with_own_head, with_own_embedding)):
        for base in bases:
            try:
                other = base
                for edit in edits:
                    other = edit(other, target)
            except ConversionError:
                continue  # what it lacks is told by what stands against the others
            if other is not base:
                yield other


def _candidate(trained: Trained, material: Material, writer: Writer, goal: Goal) -> Plan:
    """The plan that `writer` makes; raises ConversionError where it cannot express the drafter."""
    material = with_mask(material) if writer.masks else without_mask(material)
    config, names = writer(material.spec, tuple(material.parts), _dtype(material))
    return planned(
        material,
        config,
        names,
        {},
        source=trained.checkpoint.location,
        before=trained.dialect,
        after=writer.dialect,
        manner=writer.manner,
        form=writer.form,
        goal=str(goal),
    )


def _dtype(material: Material) -> str | None:
    """torch's name of the type that all weights share, or None."""
    kinds = {p.rows.dtype for role, p in material.parts.items() if is_weight(role, p)}
    return TORCH_NAMES.get(kinds.pop()) if len(kinds) == 1 else None
