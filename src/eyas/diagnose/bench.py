"""Bench: a target in memory and the evidence that drafters for it are judged on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from eyas.checkpoint import TargetFacts, open_target
from eyas.diagnose.evidence import Evidence, gather
from eyas.model.load import load_target, target_directory
from eyas.model.target import Target

Say = Callable[[str], None]


def silent(what: str) -> None:
    """Hears what takes long, and says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What is made once a target, however many drafters are diagnosed on it.

    `facts` has the location that was typed, which commands repeat, and the directory that is read.
    """

    target: Target
    facts: TargetFacts
    evidence: Evidence


def open_bench(location: str | Path, prompts: Path | None = None, say: Say = silent) -> Bench:
    """The target at `location` in float32 on the CPU, and what it answers to `prompts`.

    Without `prompts`, eyas's own 24. Raises TargetError and UsageError where either is unusable.
    """
    directory = target_directory(location)
    say(f"loading {location}")
    target = load_target(directory, dtype=torch.float32)
    facts = replace(open_target(directory), location=str(location))
    return Bench(target=target, facts=facts, evidence=gather(target, prompts, say))
