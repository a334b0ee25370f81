"""Whether what was written is what was trained: read again by the dialect and by the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from eyas.checks import NO_TARGET, Severity, Trained, View, as_trained, compare_view
from eyas.checks.rules.boundaries import BoundariesShifted
from eyas.checks.rules.config import EngineRefuses
from eyas.checks.rules.positions import PositionsDiffer
from eyas.checks.rules.target import PositionsBelowTarget
from eyas.convert.objection import Objection
from eyas.spec import Fact, NotChecked

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint
    from eyas.convert.plan import Rename
    from eyas.engines import EngineRef


def objections(trained: Trained, written: Checkpoint, ref: EngineRef) -> list[Objection]:
    """Why `written` is not `trained` in the eyes of its own dialect or of `ref`; empty if it is."""
    from eyas import engines

    again = as_trained(written, target=trained.target)
    found = [
        Objection(text=f"re-read with {change}") for change in changes(trained.spec, again.spec)
    ]
    served = engines.read(ref, written, target=trained.target, launch=engines.Launch())
    if isinstance(served, NotChecked):
        return [*found, Objection(text=f"{ref} is not covered: {served.reason}")]
    findings, skipped = compare_view(View(trained=again, served=served))
    stage = None if served.refusal is None else served.refusal.stage
    limit = getattr(trained.spec, "max_position_embeddings", None)
    no_limit = limit is not None and limit.value is None
    found += [
        Objection(
            text=f.message,
            stage=stage if f.code == EngineRefuses.code else None,
            # A warning about boundaries is one that the target's depth would settle.
            needs_target=trained.target is None
            and f.code == BoundariesShifted.code
            and f.severity is Severity.WARNING,
            unstated=f.place if f.code == PositionsDiffer.code and no_limit else None,
        )
        for f in findings
        # Its own limit is no change: no way of writing it has another.
        if f.severity is not Severity.INFO and f.code != PositionsBelowTarget.code
    ]
    found += [
        Objection(
            text=f"{skip.check} could not run: {skip.reason}",
            skipped=True,
            needs_target=trained.target is None and NO_TARGET in skip.reason,
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


def changed_bytes(before: Checkpoint, after: Checkpoint, renames: Iterable[Rename]) -> list[str]:
    """The tensors whose type, shape or bytes are not those of the source."""
    from concurrent.futures import ThreadPoolExecutor

    from eyas.checkpoint import same_bytes

    def same(rename: Rename) -> bool:
        return same_bytes(before, rename.before, after, rename.after)

    renames = tuple(renames)
    # Reading and comparing leave the interpreter free, and two threads are a quarter faster.
    with ThreadPoolExecutor(2, thread_name_prefix="eyas-compare") as pool:
        found = zip(renames, pool.map(same, renames), strict=True)
        return [f"{name.after} differs from {name.before}" for name, equal in found if not equal]
