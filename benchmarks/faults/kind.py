"""Kind: one way to break a drafter, and what is known of it before anybody looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from benchmarks.faults.draft import Draft
from benchmarks.faults.setting import Setting

Draw = np.random.Generator
Plant = Callable[[Draft, Draw], dict[str, Any]]
Shows = Callable[[Setting], bool]


class Part(StrEnum):
    """The part of a drafter's arithmetic that a fault is in."""

    BOUNDARIES = "boundaries"
    FUSION = "fusion"
    LAYER = "layer"  # its matrices
    HEADS = "heads"  # how its matrices are cut into heads
    NORMS = "norms"
    RESIDUAL = "residual"
    FEEDBACK = "feedback"
    ROPE = "rope"
    EMBEDDING = "embedding"
    HEAD = "head"
    ROWS = "rows"  # which id a row of the head is for
    EVERYTHING = "everything"


class Sign(StrEnum):
    """Where a fault can be seen at the earliest."""

    FILES = "files"  # in files and launch, by who knows the engine or looks at the numbers
    REPLAY = "replay"  # in acceptance alone: the files are in order


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A fault: `plant` edits a draft and returns what it drew.

    `stands_for` is the kind of failure in the taxonomy of public reports, `reports` are some.
    `shows` says in which sound settings the engine then computes something else. `silences` are
    the parts that are no longer computed once it is there; `destroys` says that numbers are gone
    which nobody can bring back. `refuses` where the engine then does not start.
    """

    name: str
    stands_for: str
    reports: tuple[str, ...]
    part: Part
    sign: Sign
    plant: Plant
    shows: Shows
    silences: frozenset[Part] = field(default_factory=frozenset)
    destroys: bool = False
    refuses: bool = False


def anywhere(setting: Setting) -> bool:
    """Shows in every setting."""
    return True


def choose(draw: Draw, among: list[Any] | tuple[Any, ...]) -> Any:
    """One of `among`, kept as it is."""
    return among[int(draw.integers(len(among)))]
