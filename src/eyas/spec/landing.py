"""Landing: an exact account of which tensor fills which parameter, and of what nothing fills."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod


class Fate(StrEnum):
    """What becomes of a tensor of the checkpoint."""

    LANDED = "landed"  # in one or more parameters, wholly or cut (`cut` counts what is missing)
    CONSUMED = "consumed"  # turned into something else: d2t into the id map
    IGNORED = "ignored"  # left out by design: t2d is a training mask
    LOST = "lost"  # in no parameter, and nobody says so


class Initialisation(StrEnum):
    """What a parameter holds where no tensor fills it."""

    MEMORY = "uninitialised memory"
    ONES = "ones"
    ZEROS = "zeros"
    RANDOM = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class FromTensor:
    """A segment filled by a tensor of the checkpoint."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FromTarget:
    """A segment filled by the target's own matrix (its embedding, its head)."""

    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Padding:
    """A segment that the engine adds and fills with zeros, and whose outputs it cuts off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfilled:
    """A segment that nothing fills: it keeps what construction left there."""

    initialisation: Initialisation


SegmentSource = FromTensor | FromTarget | Padding | Unfilled


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Rows `start` to `stop` (of dimension 0) of a parameter, and what fills them.

    `role` is the matrix of the drafter that these rows are, by the name that `model.Drafter` gives
    it (``layers.0.self_attn.q_proj.weight``); None where they are no part of its arithmetic.
    `zeros` counts the elements that the engine fills with zeros because the tensor is too small.
    `offset` is the row of the tensor that comes to lie in row `start`: a tensor that holds several
    parts, such as a fused qkv_proj, fills each from another row on.
    """

    start: int
    stop: int
    source: SegmentSource
    role: str | None
    zeros: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorLanding:
    """One tensor of the checkpoint and its fate. `cut` is the number of its elements left out."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    fate: Fate
    parameters: tuple[str, ...] = ()
    cut: int = 0
    reason: str = ""

    @property
    def elements(self) -> int:
        """The number of its elements."""
        return prod(self.shape)

    def faults(self, holders: set[str], held: int) -> Iterator[str]:
        """What does not add up with `holders`, which hold `held` of its elements."""
        if set(self.parameters) != holders:
            yield f"{self.name} and its parameters name each other differently"
        if (self.fate is Fate.LANDED) != bool(self.parameters):
            yield f"{self.name} is {self.fate} in {len(self.parameters)} parameters"
        if not 0 <= self.cut <= self.elements:
            yield f"{self.name} is cut by {self.cut} of {self.elements} elements"
        if self.fate is Fate.LANDED and held + self.cut != self.elements:
            yield f"{self.name} has {self.elements} elements: {held} held, {self.cut} cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterLanding:
    """One parameter of the engine's model and the segments that make it up, in row order.

    `replaced` names what overwrites the whole parameter after loading, such as the target's
    embedding; the segments then tell what loading had left there.
    """

    name: str
    shape: tuple[int, ...]
    segments: tuple[Segment, ...]
    replaced: FromTarget | None = None

    @property
    def elements(self) -> int:
        """The number of its elements."""
        return prod(self.shape)

    @property
    def unfilled(self) -> bool:
        """Whether some of it still holds what construction left there, after sharing."""
        return self.replaced is None and any(isinstance(s.source, Unfilled) for s in self.segments)

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensors of the checkpoint in it, in row order."""
        return tuple(s.source.tensor for s in self.segments if isinstance(s.source, FromTensor))

    def gaps(self) -> Iterator[str]:
        """Where its segments do not follow each other from the first row to the last."""
        row = 0
        for segment in self.segments:
            if segment.start != row or segment.stop <= segment.start:
                yield f"{self.name} has a gap or an overlap at row {row}"
            row = segment.stop
        if row != self.shape[0]:
            yield f"{self.name} has {self.shape[0]} rows, accounted: {row}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """Both sides of a load: every tensor once, every parameter once, and they add up."""

    tensors: tuple[TensorLanding, ...]
    parameters: tuple[ParameterLanding, ...]
    log: tuple[str, ...] = field(default=())  # what the engine itself would print about it

    @property
    def lost(self) -> tuple[TensorLanding, ...]:
        """The tensors that nobody says are left out."""
        return tuple(t for t in self.tensors if t.fate is Fate.LOST)

    @property
    def unfilled(self) -> tuple[ParameterLanding, ...]:
        """The parameters that still hold what construction left there."""
        return tuple(p for p in self.parameters if p.unfilled)

    def imbalance(self) -> tuple[str, ...]:
        """Sentences about whatever does not add up; empty for every landing that is right."""
        faults: list[str] = []
        holders: dict[str, set[str]] = {}
        held: dict[str, int] = {}
        for parameter in self.parameters:
            faults += parameter.gaps()
            width = prod(parameter.shape[1:])
            for segment in parameter.segments:
                if isinstance(segment.source, FromTensor):
                    name = segment.source.tensor
                    holders.setdefault(name, set()).add(parameter.name)
                    elements = (segment.stop - segment.start) * width - segment.zeros
                    held[name] = held.get(name, 0) + elements
        known = {t.name for t in self.tensors}
        faults += [f"{n} fills a parameter but is no tensor" for n in holders if n not in known]
        for tensor in self.tensors:
            faults += tensor.faults(holders.get(tensor.name, set()), held.get(tensor.name, 0))
        return tuple(faults)
