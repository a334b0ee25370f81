"""convert(): plan, write beside the destination, check what was written, rename into place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eyas.checkpoint import SINGLE_FILES, Format
from eyas.checkpoint.header import tensor_nbytes
from eyas.checkpoint.place import GGUF_SUFFIX
from eyas.checkpoint.rows import tensor_bytes
from eyas.convert.goal import Goal
from eyas.convert.plan import Plan
from eyas.convert.planning import plan
from eyas.convert.recheck import changed_numbers, objections
from eyas.convert.wishes import NO_WISHES, Wishes
from eyas.errors import CheckpointError, ConversionError, UsageError

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts
    from eyas.engines import Launch

# Files that say whose the weights are and under which terms; they go where the weights go.
_COMPANIONS = ("README.md", "LICENSE", "LICENSE.txt", "LICENSE.md", "NOTICE")
_COMPANION_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionResult:
    """A conversion that was written, read again, and found exact."""

    plan: Plan
    directory: Path
    nbytes: int  # of all tensors, each compared with its source

    def json(self) -> str:
        """The result for a program: the plan, where it was written, and how much was compared."""
        import json

        written = {"directory": str(self.directory), "bytes_compared": self.nbytes}
        return json.dumps(self.plan.summary() | written, indent=2, allow_nan=False) + "\n"

    def text(self) -> str:
        """The result for a reader."""
        made = self.plan
        reads = "sees" if made.goal == made.after else f"and {made.goal} both see"
        lines = [
            f"{self.directory}: {made.before} → {made.after} ({made.manner}), for {made.goal}",
            *(f"  {change}" for change in made.changes),
            f"  {len(made.renamed)} of {len(made.tensors)} tensors renamed; {self.nbytes} bytes"
            " compared with the source, none differs",
            f"  read again: the {made.after} dialect {reads} what was trained",
        ]
        return "\n".join(lines) + "\n"


def convert(
    checkpoint: Checkpoint,
    out: str | Path,
    goal: Goal,
    *,
    target: TargetFacts | None = None,
    launch: Launch | None = None,
    wishes: Wishes = NO_WISHES,
    progress: Callable[[int], None] | None = None,
) -> ConversionResult:
    """Writes `checkpoint` as the new `out`, so that `goal` computes what was trained.

    `progress` is told how many more bytes are written.

    Raises ConversionError when no way of writing is exact, or when what was written does not read
    back as what was trained, and CheckpointError when `out` exists or cannot be written; there is
    then no new `out`.
    """
    from eyas.checkpoint import Unchanged, open_checkpoint, require_new, staged, write_checkpoint
    from eyas.checkpoint.gguf_write import write_gguf

    final = Path(out).expanduser().absolute()
    require_new(final)  # before the work of planning
    source = Unchanged.since(checkpoint)
    chosen = plan(checkpoint, goal, target=target, launch=launch, wishes=wishes, out=str(out))

    def verify(stage: Path) -> None:
        written = open_checkpoint(stage)
        against = objections(chosen.spec, target, written, goal, launch, chosen.copied)
        faults = [o.text for o in against] + changed_numbers(chosen, written)
        source.require()
        if faults:
            raise ConversionError(
                f"what was written for {goal} does not read back as what was trained: {faults[0]}",
                hint="nothing was kept; please report it",
            )

    _require_fitting_name(final, chosen.form)
    tensors = {tensor.after: tensor_bytes(tensor.rows) for tensor in chosen.tensors}
    try:
        if chosen.form is Format.GGUF:
            with staged(final) as draft:
                write_gguf(draft, chosen.config, tensors, progress=progress)
                verify(draft)
        else:
            write_checkpoint(
                final,
                chosen.config,
                tensors,
                extra_files=_companions(checkpoint.directory),
                shard_bytes=wishes.shard_bytes,
                verify=verify,
                progress=progress,
            )
    except (CheckpointError, ConversionError):
        source.require()  # where it changed, that is why
        raise
    return ConversionResult(
        plan=chosen,
        directory=Path(out),
        nbytes=sum(tensor_nbytes(t.rows.dtype, t.rows.shape) for t in chosen.tensors),
    )


def _require_fitting_name(final: Path, form: Format) -> None:
    """Raises UsageError where a file has a directory's name or the other way round."""
    if form is Format.GGUF and final.suffix != GGUF_SUFFIX:
        raise UsageError(
            f"a GGUF file is written, and {final.name} does not end in {GGUF_SUFFIX}",
            hint=f"name it {final.name}{GGUF_SUFFIX}",
        )
    if form is Format.SAFETENSORS and final.suffix in SINGLE_FILES:
        raise UsageError(
            f"a directory is written, and {final.name} is a file's name",
            hint=f"name it {final.stem}",
        )


def _companions(directory: Path) -> dict[str, str | bytes]:
    from eyas.checkpoint.regular import read_regular

    return {
        name: read_regular(directory / name, max_bytes=_COMPANION_BYTES)
        for name in _COMPANIONS
        if (directory / name).is_file()
    }
