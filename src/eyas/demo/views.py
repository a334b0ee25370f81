"""What the acts ask of dialects and engines, and how the answers are worded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eyas import dialects, engines
from eyas.checkpoint import (
    Checkpoint,
    TargetFacts,
    TensorBytes,
    open_checkpoint,
    write_checkpoint,
)
from eyas.dialects import specforge
from eyas.errors import EngineError
from eyas.spec import Eagle3Spec, Served


def flatten(checkpoint: Checkpoint, directory: Path) -> Checkpoint:
    """What a user does by hand: the nested config made flat, the tensors left as they are named."""
    dialect, spec = dialects.read(checkpoint)
    assert isinstance(spec, Eagle3Spec)  # the demo's own drafter
    roles = dialect.roles(checkpoint)
    config, names = specforge.write(spec, set(roles.values()), layer_prefix="layers.0.")
    tensors = {}
    for tensor, role in roles.items():
        header = checkpoint.tensors[tensor]
        data = checkpoint.read_bytes(tensor)
        tensors[names[role]] = TensorBytes(dtype=header.dtype, shape=header.shape, data=data)
    write_checkpoint(directory, config, tensors)
    return open_checkpoint(directory)


def read(
    name: str,
    checkpoint: Checkpoint,
    facts: TargetFacts,
    launch: engines.Launch | None = None,
) -> Served:
    """What engine `name` makes of a checkpoint; raises EngineError outside the known versions."""
    ref = engines.EngineRef.parse(name)
    launch = launch or engines.Launch.parse([])
    view = engines.read(ref, checkpoint, target=facts, launch=launch)
    if not isinstance(view, Served):
        raise EngineError(f"{name} is not checked: {view.reason}")
    return view


def verdict_of(served: Served) -> str:
    """One line: refused and why, or how many tensors land and how many are lost."""
    if served.refusal is not None:
        # the first clause says why; what follows explains it to whoever asks `eyas check`
        why = served.refusal.message.partition(" (")[0].partition(";")[0]
        return f"refuses at {served.refusal.stage}: {why}"
    assert served.landing is not None  # served, so it was loaded
    tensors, lost = len(served.landing.tensors), len(served.landing.lost)
    if lands_wholly(served):
        return f"{tensors} of {tensors} tensors are where they belong"
    return (
        f"loses {lost} of {tensors} tensors and leaves {len(served.landing.unfilled)} parameters "
        "unfilled, without a log line"
    )


def label(served: Served) -> str:
    """Engine and version as they are typed."""
    return f"{served.engine}@{served.version}"


def lost_tensors(views: Sequence[Served]) -> list[int | None]:
    """How many tensors each engine loses; None where it loads nothing."""
    return [len(view.landing.lost) if view.landing else None for view in views]


def lands_wholly(served: Served) -> bool:
    """Whether every tensor is where it belongs and every parameter is filled."""
    landing = served.landing
    return landing is not None and not landing.lost and not landing.unfilled
