"""Whether what was written is what was trained: read again by the dialect and by the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from eyas import dialects
from eyas.checkpoint import Format
from eyas.checkpoint.rows import Rows, StoredRows
from eyas.checks import NO_TARGET, Severity, View, as_trained, compare_view
from eyas.checks.rules.boundaries import BoundariesShifted
from eyas.checks.rules.config import EngineRefuses
from eyas.checks.rules.landing import LayerDropped
from eyas.checks.rules.positions import PositionsDiffer
from eyas.checks.rules.target import PositionsBelowTarget
from eyas.checks.rules.vocabulary import EmbeddingReplaced
from eyas.convert.goal import DialectGoal, Goal
from eyas.convert.material import Drafter
from eyas.convert.objection import Objection
from eyas.convert.plan import Plan
from eyas.convert.same import same_numbers
from eyas.dialects.contents import contents
from eyas.dialects.gguf_rows import offsets
from eyas.spec import Fact, NotChecked, PEagleSpec, Recognised

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts
    from eyas.engines import Launch


def objections(
    spec: Drafter,
    target: TargetFacts | None,
    written: Checkpoint,
    goal: Goal,
    launch: Launch | None = None,
    copied: bool = False,
) -> list[Objection]:
    """Why `written` is not the drafter of `spec`, to its own dialect or to `goal`; else empty.

    `copied` says that its embedding has the target's numbers, which may then stand in its place.
    """
    from eyas import engines

    again = as_trained(written, target=target)
    found = [Objection(text=f"re-read with {change}") for change in changes(spec, again.spec)]
    if isinstance(goal, DialectGoal):
        if again.dialect != goal.name:
            found.append(Objection(text=f"read again, it is taken for {again.dialect}"))
        return found
    served = engines.read(goal, written, target=target, launch=launch or engines.Launch())
    if isinstance(served, NotChecked):
        return [*found, Objection(text=f"{goal} is not covered: {served.reason}", unjudged=True)]
    findings, skipped = compare_view(View(trained=again, served=served))
    stage = None if served.refusal is None else served.refusal.stage
    facts = spec.drafter if isinstance(spec, PEagleSpec) else spec
    lost = 0 if served.landing is None else len(served.landing.lost)
    no_limit = facts.max_position_embeddings.value is None
    found += [
        Objection(
            text=f.message,
            stage=stage if f.code == EngineRefuses.code else None,
            # A warning about boundaries is one that the target's depth would settle.
            needs_target=target is None
            and f.code == BoundariesShifted.code
            and f.severity is Severity.WARNING,
            replaced=f.code == EmbeddingReplaced.code,
            unstated=f.place if f.code == PositionsDiffer.code and no_limit else None,
            weight=lost if f.code == LayerDropped.code else 1,
        )
        for f in findings
        # Its own limit is no change: no way of writing it has another.
        if (f.severity is not Severity.INFO and f.code != PositionsBelowTarget.code)
        or (f.code == EmbeddingReplaced.code and not copied)
    ]
    found += [
        Objection(
            text=f"{skip.check} could not run: {skip.reason}",
            skipped=True,
            needs_target=target is None and NO_TARGET in skip.reason,
        )
        for skip in skipped
    ]
    return found


def changes(before: object, after: object, path: str = "") -> Iterator[str]:
    """Each fact whose value differs between two specs, as ``rope = … instead of …``."""
    if isinstance(before, Fact) and isinstance(after, Fact):
        if before.value != after.value:
            yield f"{path} = {after.value} instead of {before.value}"
    elif type(before) is not type(after):
        yield f"{path or 'the drafter'} of kind {type(after).__name__}"
    elif is_dataclass(before):
        for field in fields(before):
            if field.name == "target_name":
                continue  # whose drafter it is: no part of its arithmetic
            inner = f"{path}.{field.name}" if path else field.name
            yield from changes(getattr(before, field.name), getattr(after, field.name), inner)
    elif before != after:
        yield f"{path} = {after} instead of {before}"


def changed_numbers(plan: Plan, written: Checkpoint) -> list[str]:
    """The tensors of `written` that do not hold the numbers of `plan`, role by role.

    They are read as its dialect reads them, so that a permutation is undone by other code than made
    it, and the whole of both sides is read.
    """
    from concurrent.futures import ThreadPoolExecutor

    dialect, spec = dialects.read(written)
    if isinstance(spec, Recognised):
        return [f"it is read again as {spec.name}"]
    facts = spec.drafter if isinstance(spec, PEagleSpec) else spec
    roles = dialect.roles(written)
    found: dict[str, Rows] = {
        role: content.rows for role, content in contents(written, roles, facts.attention).items()
    }
    if written.format is Format.GGUF and "d2t" in found:
        found["d2t"] = offsets(found["d2t"])
    # what has no role is known by its name
    found |= {name: StoredRows(written, name) for name in written.tensors if name not in roles}
    planned = {tensor.role or tensor.after: tensor for tensor in plan.tensors}
    both = [(tensor, found[key]) for key, tensor in planned.items() if key in found]
    # Reading and comparing leave the interpreter free.
    with ThreadPoolExecutor(2, thread_name_prefix="eyas-compare") as pool:
        same = pool.map(lambda pair: same_numbers(pair[0].trained, pair[1]), both)
        differ = [tensor for (tensor, _), equal in zip(both, same, strict=True) if not equal]
    return [
        *(f"{key} is not there" for key in planned.keys() - found.keys()),
        *(f"{key} is there, which was not planned" for key in found.keys() - planned.keys()),
        *(f"{tensor.after} differs from {tensor.before}" for tensor in differ),
    ]
