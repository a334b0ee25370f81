"""Served: a drafter as one engine version will compute it, or why it will not start."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eyas.spec.draft import DraftSpec
from eyas.spec.fact import Fact
from eyas.spec.landing import Landing


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A statement about an engine, and the line of its source that it rests on."""

    text: str
    project: str
    version: str
    file: str
    lines: str

    @property
    def citation(self) -> str:
        """Project, version, file and lines in one string."""
        return f"{self.project} {self.version}, {self.file}:{self.lines}"


class Stage(StrEnum):
    """Where an engine stops."""

    CONFIG = "config"  # parsing the drafter's config
    CONSTRUCT = "construct"  # building the model
    LOAD = "load"  # loading the weights
    JOIN = "joining the target"  # its captured states, its embedding, its head
    FIRST_REQUEST = "first request"


class LongContext(StrEnum):
    """What an engine does where the target serves longer sequences than the drafter has positions.

    It says nothing of acceptance there: the drafter was trained up to its own limit.
    """

    REFUSED = "refused"  # it raises at the start
    EXTENDED = "extended"  # the drafter is given the target's limit
    UNGUARDED = "unguarded"  # the drafter is built with its own limit, and served beyond it


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an engine raises instead of serving; `hint` is what to type where eyas cannot convert."""

    stage: Stage
    message: str
    claim: Claim
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What one engine version makes of a checkpoint under one launch.

    `slides` says whether a layer's attention sees a sliding window of tokens alone. It, `spec` and
    `landing` are None when the engine refuses before it has them.
    """

    engine: str
    version: str
    runner: str | None
    spec: DraftSpec | None
    landing: Landing | None
    slides: Fact[bool] | None
    refusal: Refusal | None
    claims: tuple[Claim, ...]
    context: Fact[int] | None = None  # the longest sequence in tokens, where the launch says it
    long_context: Fact[LongContext] | None = None  # None where no contract says it


@dataclass(frozen=True, slots=True, kw_only=True)
class NotChecked:
    """An engine, version or part of it that eyas has no contract for: never a pass."""

    engine: str
    version: str
    runner: str | None
    reason: str
