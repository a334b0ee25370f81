"""Search: the first way of writing a drafter in which its goal reads what was trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from shlex import quote
from typing import TYPE_CHECKING, Any

from eyas.checkpoint import Format
from eyas.checkpoint.header import TORCH_NAMES
from eyas.checks import Trained, as_trained
from eyas.convert.edits.boundaries import (
    with_ascending_boundaries,
    with_default_boundaries,
    with_stated_boundaries,
)
from eyas.convert.edits.dtype import with_one_dtype
from eyas.convert.edits.layers import with_other_later_norm, with_output_bias
from eyas.convert.edits.maps import (
    with_mask,
    with_sorted_offsets,
    with_stated_map,
    without_mask,
    without_whole_map,
)
from eyas.convert.edits.ownership import (
    has_targets_embedding,
    missing_weights,
    with_own_embedding,
    with_own_head,
    without_own_embedding,
    without_own_head,
)
from eyas.convert.edits.unseen import unseen_forms
from eyas.convert.gguf import as_gguf, tokenizer_of
from eyas.convert.goal import DialectGoal, Goal
from eyas.convert.material import Material, is_weight, material_of
from eyas.convert.objection import Attempt, Objection, refusal
from eyas.convert.plan import Plan, PlannedTensor
from eyas.convert.recheck import objections
from eyas.convert.wishes import NO_WISHES, Wishes
from eyas.convert.writers import FOR_ENGINES, Writer, writers_of
from eyas.engines import EngineRef, require_covered
from eyas.engines.catalogue import engine_named
from eyas.errors import ConversionError, TargetNeededError, UnjudgedError
from eyas.spec import Eagle3Spec

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts
    from eyas.engines import Launch


# The writers in the order of FOR_ENGINES: the flat forms, which all engines parse, tell the most.
_TOLD = {writer.manner: place for place, writer in enumerate(FOR_ENGINES)}
_ADDING = ((with_own_head,), (with_own_embedding,), (with_own_head, with_own_embedding))
_LEAVING = (
    (without_own_head,),
    (without_own_embedding,),
    (without_own_head, without_own_embedding),
)
# Other ways to say what computes the same: each makes a further form, or None.
_RESTATED: tuple[Callable[[Material, TargetFacts | None], Material | None], ...] = (
    without_whole_map,
    with_stated_map,
    with_other_later_norm,
    with_output_bias,
    with_ascending_boundaries,
)
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
    _require_judged(trained, goal)
    material = material_of(trained)
    if checkpoint.format is Format.GGUF:
        material = with_one_dtype(material)
    material = wishes.granted(with_sorted_offsets(material), target)
    return _Search(trained, goal, launch, material).first()


@dataclass(frozen=True, slots=True)
class _Search:
    """One drafter on its way to one goal."""

    trained: Trained
    goal: Goal
    launch: Launch | None
    material: Material

    def first(self) -> Plan:
        """The first plan against which nothing stands; ConversionError with all that does."""
        attempts: list[Attempt] = []
        tokenizer = cache(self._tokenizer)
        for material in self._forms():
            for writer in self._writers():
                place = _TOLD.get(writer.manner, 0)
                try:
                    candidate = self._candidate(material, writer, tokenizer)
                except TargetNeededError:
                    raise
                except ConversionError as error:
                    attempts.append(Attempt(order=(place, error.facts), unwritten=error))
                    continue
                candidate, found = self._judged(material, candidate)
                if not found:
                    return candidate
                attempts.append(Attempt(order=(place, 0), against=tuple(found)))
        if not attempts:
            raise ConversionError(f"eyas writes nothing that {self.goal} reads")
        refused = refusal(self.trained.checkpoint.location, attempts, self.goal)
        wanting = None if isinstance(refused, TargetNeededError) else self._wanting(tokenizer)
        if wanting is None:
            raise refused
        raise TargetNeededError(f"{refused.message}; {wanting.message}", hint=wanting.hint)

    def _wanting(self, tokenizer: Callable[[], Mapping[str, Any]]) -> TargetNeededError | None:
        """What is said of the target's weights, where they alone keep a way from being exact."""
        target, goal = self.trained.target, self.goal
        wanting = missing_weights(self.material, target)
        if wanting is None:
            return None
        for base in self._bases():
            for material in unseen_forms(base, heads=isinstance(goal, EngineRef)):
                for writer in self._writers():
                    try:
                        plan = self._candidate(material, writer, tokenizer)
                    except ConversionError:
                        continue
                    if not objections(plan.spec, target, plan.imagined(), goal, self.launch):
                        return wanting
        return None

    def _judged(self, material: Material, plan: Plan) -> tuple[Plan, list[Objection]]:
        """What stands against `plan`; a replaced embedding does not where it is the target's."""
        target = self.trained.target
        found = objections(plan.spec, target, plan.imagined(), self.goal, self.launch)
        if not all(objection.replaced for objection in found):
            # Whether it has the target's numbers is no matter where more stands in the way.
            return plan, [replace(o, needs_target=o.replaced or o.needs_target) for o in found]
        if not found:
            return plan, found
        copied = has_targets_embedding(material, target)
        if copied:
            return replace(plan, copied=True, changes=(*plan.changes, _COPIED)), []
        return plan, [replace(o, needs_target=copied is None) for o in found]

    def _writers(self) -> list[Writer]:
        if isinstance(self.goal, DialectGoal):
            return list(writers_of(self.goal.name))
        engine = engine_named(self.goal.name)
        takes_gguf = engine is not None and engine.reads_gguf
        fitting = [w for w in FOR_ENGINES if (w.form is Format.GGUF) is takes_gguf]
        return sorted(fitting, key=lambda writer: writer.dialect != self.trained.dialect)

    def _bases(self) -> list[Material]:
        """The material, and then the same drafter with other facts stated."""
        material, target = self.material, self.trained.target
        stated = [
            edit(material, target) for edit in (with_stated_boundaries, with_default_boundaries)
        ]
        bases = [material, *(other for other in stated if other is not None)]
        for restate in _RESTATED:
            again = [restate(base, target) for base in bases]
            bases += [other for other in again if other is not None]
        return bases

    def _forms(self) -> Iterator[Material]:
        """The bases, and then each with its embedding and its head stored otherwise."""
        bases, target = self._bases(), self.trained.target
        yield from bases
        # Engines that would use the target's do so whether the drafter stores one or not.
        for edits in (*_ADDING, *(_LEAVING if isinstance(self.goal, DialectGoal) else ())):
            for base in bases:
                try:
                    other = base
                    for edit in edits:
                        other = edit(other, target)
                except ConversionError:
                    continue  # what it lacks is told by what stands against the others
                if other is not base:
                    yield other

    def _candidate(
        self, material: Material, writer: Writer, tokenizer: Callable[[], Mapping[str, Any]]
    ) -> Plan:
        """The plan that `writer` makes; raises ConversionError for what it cannot express."""
        target = self.trained.target
        material = with_mask(material) if writer.masks else without_mask(material)
        config, names = writer(
            material.spec,
            tuple(material.parts),
            dtype=_dtype(material),
            target_layers=None if target is None else target.num_layers,
        )
        parts = material.parts
        plan = Plan(
            source=self.trained.checkpoint.location,
            before=self.trained.dialect,
            after=writer.dialect,
            manner=writer.manner,
            form=writer.form,
            goal=str(self.goal),
            spec=material.spec,
            config=config,
            changes=material.changes,
            tensors=tuple(
                PlannedTensor(
                    role=role,
                    before=parts[role].origin,
                    after=name,
                    rows=parts[role].rows,
                    trained=parts[role].rows,
                )
                for role, name in names.items()
            ),
        )
        return plan if writer.form is Format.SAFETENSORS else as_gguf(plan, tokenizer)

    def _tokenizer(self) -> Mapping[str, Any]:
        return tokenizer_of(self.trained.target, self.material.facts.vocab_size.value)


def _require_judged(trained: Trained, goal: Goal) -> None:
    if isinstance(goal, DialectGoal) or isinstance(trained.spec, Eagle3Spec):
        return
    location = trained.checkpoint.location
    raise UnjudgedError(
        f"{location} cannot be shown to be exact on {goal}: {trained.spec.unjudged}",
        hint=f"look at what it says of itself: eyas inspect {quote(location)}",
    )


def _dtype(material: Material) -> str | None:
    """torch's name of the type that all weights share, or None."""
    kinds = {p.rows.dtype for role, p in material.parts.items() if is_weight(role, p)}
    return TORCH_NAMES.get(kinds.pop()) if len(kinds) == 1 else None
