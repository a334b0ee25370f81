"""One diagnosis: a drafter at a path, its target, an engine and a launch, and what eyas says."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from benchmarks.diagnose_bases import Base
from benchmarks.diagnose_run import Diagnosed

from eyas.checkpoint import open_checkpoint
from eyas.diagnose.bench import Bench, open_bench
from eyas.diagnose.diagnosis import diagnose
from eyas.engines import EngineRef, Launch
from eyas.errors import EyasError


def diagnosed(base: Base, path: Path, ref: str, launch: Sequence[str]) -> Diagnosed:
    """What eyas finds wrong. A refusal of eyas itself is a cause of no kind, and so is a crash."""
    bench = _bench(base.target, base.prompts)
    try:
        found = diagnose(open_checkpoint(path), bench, EngineRef.parse(ref), Launch.parse(launch))
    except EyasError as error:
        return Diagnosed(causes=(f"error: {type(error).__name__}",), said=str(error))
    except (RuntimeError, ValueError, LookupError, AssertionError, TypeError, AttributeError):
        said = traceback.format_exc()
        return Diagnosed(causes=(f"crash: {said.strip().splitlines()[-1]}",), said=said)
    return Diagnosed(causes=tuple(str(cause.id) for cause in found.causes), said=found.text())


@cache
def _bench(target: Path, prompts: Path | None) -> Bench:
    return open_bench(target, prompts)
