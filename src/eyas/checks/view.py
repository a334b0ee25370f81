"""View: the two readings of one checkpoint that a rule compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from eyas.checkpoint import SINGLE_FILES
from eyas.checkpoint.place import GGUF_SUFFIX
from eyas.spec import DraftSpec, Served

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts
    from eyas.checks.values import DraftValues


class Repair(Enum):
    """What `eyas convert` would make of a drafter for one engine."""

    EXACT = "it writes what the engine computes as trained"
    WITH_TARGET = "it does once the target is named"
    REFUSED = "it refuses"
    UNTRIED = "nobody knows: it could not be tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A checkpoint as its producer's code computes it.

    `roles` gives a tensor of the checkpoint its name in the drafter's arithmetic; a tensor that
    the dialect does not know has none. `target` is None where the caller named none, `values`
    where nobody asked to read the weights. `repair` tries a conversion for an engine as it is
    typed, so that a report advises none that would refuse; it is None where the caller tries none.
    """

    checkpoint: Checkpoint
    dialect: str
    spec: DraftSpec
    roles: Mapping[str, str]
    target: TargetFacts | None
    values: DraftValues | None = None
    repair: Callable[[str], Repair] | None = None

    @property
    def draft(self) -> str:
        """The drafter as it is typed in a shell."""
        return quote(self.checkpoint.location)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The same checkpoint as one engine version will compute it."""

    trained: Trained
    served: Served

    @property
    def engine(self) -> str:
        """The engine as a reader names it: ``sglang 0.5.11``, ``vllm 0.33.0:v2``."""
        return self.reference.replace("@", " ", 1)

    @property
    def reference(self) -> str:
        """The engine as it is typed: ``sglang@0.5.11``."""
        runner = "" if self.served.runner is None else f":{self.served.runner}"
        return f"{self.served.engine}@{self.served.version}{runner}"

    @property
    def draft(self) -> str:
        """The drafter as it is typed in a shell."""
        return self.trained.draft

    @property
    def conversion(self) -> str:
        """The command that writes this drafter for this engine."""
        from eyas.engines.catalogue import engine_named

        plain = self.trained.checkpoint.location.rstrip("/")
        single = next((end for end in SINGLE_FILES if plain.endswith(end)), "")
        plain = plain.removesuffix(single)
        if Path(plain).name in ("", ".."):  # `.` and its like have no name to add to
            plain = str(Path(plain).resolve())
        if self.trained.checkpoint.revision is not None:  # a Hub id is no place to write to
            plain = "./" + plain.partition("@")[0].rpartition("/")[2]
        engine = engine_named(self.served.engine)
        suffix = GGUF_SUFFIX if engine is not None and engine.reads_gguf else ""
        out = quote(f"{plain}-{self.served.engine}{suffix}")
        target = self.trained.target
        beside = "" if target is None else f" --target {quote(target.location)}"
        return f"eyas convert {self.draft} {out} --to {self.reference}{beside}"

    def remedy(self, otherwise: str, *, likely: bool) -> str:
        """The conversion where it would succeed, else `otherwise`.

        `likely` says whether it would where nobody has tried.
        """
        tried = self.trained.repair
        match Repair.UNTRIED if tried is None else tried(self.reference):
            case Repair.EXACT:
                return self.conversion
            case Repair.WITH_TARGET:
                return f"{self.conversion} --target TARGET"
            case Repair.REFUSED:
                return otherwise
            case Repair.UNTRIED:
                return self.conversion if likely else otherwise

    @property
    def elsewhere(self) -> str:
        """What to type where this engine cannot compute the drafter at all."""
        from eyas.engines import engines_for

        known = engines_for(self.trained.checkpoint)
        here = (self.served.engine, self.served.version)
        others = ",".join(f"{e.name}@{e.newest}" for e in known if (e.name, e.newest) != here)
        if not others:
            return f"eyas inspect {self.draft}"
        newer = any(e.name == here[0] and e.newest != here[1] for e in known)
        other = "engine or version" if newer else "engine"
        return f"serve it on another {other}; ask with: eyas check {self.draft} --engine {others}"
