"""convert(): plan, write beside the destination, check what was written, rename into place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eyas.checks import as_trained
from eyas.convert.plan import Plan, plan, tensors_of
from eyas.convert.recheck import changed_bytes, objections
from eyas.errors import CheckpointError, ConversionError

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts
    from eyas.engines import EngineRef

# Files that say whose the weights are and under which terms; they go where the weights go.
_COMPANIONS = ("README.md", "LICENSE", "LICENSE.txt", "LICENSE.md", "NOTICE")
_COMPANION_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionResult:
    """A conversion that was written, read again, and found exact."""

    plan: Plan
    directory: Path
    nbytes: int  # of all tensors, each compared with its source

    def text(self) -> str:
        """The result for a reader."""
        count = len(self.plan.renames)
        renamed = sum(r.before != r.after for r in self.plan.renames)
        return (
            f"{self.directory}: {self.plan.before} → {self.plan.after} ({self.plan.manner}),"
            f" for {self.plan.engine}\n"
            f"  {renamed} of {count} tensors renamed, {self.nbytes} bytes compared, none changed\n"
            f"  read again: the {self.plan.after} dialect and {self.plan.engine}"
            " both see what was trained\n"
        )


def convert(
    checkpoint: Checkpoint,
    out: str | Path,
    ref: EngineRef,
    *,
    target: TargetFacts | None = None,
) -> ConversionResult:
    """Writes `checkpoint` as the new directory `out`, so that `ref` computes what was trained.

    Raises ConversionError when no way of writing is exact, or when what was written does not read
    back as what was trained, and CheckpointError when `out` exists or cannot be written; there is
    then no new `out`.
    """
    from eyas.checkpoint import Unchanged, open_checkpoint, require_new, write_checkpoint

    final = Path(out).expanduser().absolute()
    require_new(final)  # before the work of planning
    source = Unchanged.since(checkpoint)
    chosen = plan(checkpoint, ref, target=target)
    trained = as_trained(checkpoint, target=target)

    def verify(stage: Path) -> None:
        written = open_checkpoint(stage)
        faults = [objection.text for objection in objections(trained, written, ref)]
        faults += changed_bytes(checkpoint, written, chosen.renames)
        source.require()
        if faults:
            raise ConversionError(
                f"what was written for {ref} does not read back as what was trained: {faults[0]}",
                hint="nothing was kept; please report it",
            )

    try:
        write_checkpoint(
            final,
            chosen.config,
            tensors_of(checkpoint, chosen.renames),
            extra_files=_companions(checkpoint.directory),
            verify=verify,
        )
    except (CheckpointError, ConversionError):
        source.require()  # where it changed, that is why
        raise
    return ConversionResult(
        plan=chosen,
        directory=Path(out),
        nbytes=sum(checkpoint.tensors[rename.before].nbytes for rename in chosen.renames),
    )


def _companions(directory: Path) -> dict[str, str | bytes]:
    from eyas.checkpoint.regular import read_regular

    return {
        name: read_regular(directory / name, max_bytes=_COMPANION_BYTES)
        for name in _COMPANIONS
        if (directory / name).is_file()
    }
