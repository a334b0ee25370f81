"""Loading: tensors placed one after the other into parameters, and the Landing that results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from eyas.checkpoint import TensorHeader
from eyas.engines.parameter import Fit, Parameter, Part
from eyas.spec import (
    Fate,
    FromTarget,
    FromTensor,
    Landing,
    Padding,
    ParameterLanding,
    Segment,
    TensorLanding,
    Unfilled,
)


class Misfit(Exception):  # noqa: N818 - what the engine's loader raises, named by its reader
    """A tensor whose shape the loader refuses."""


@dataclass(frozen=True, slots=True)
class _Write:
    """What fills a part: a tensor from row `offset` on, so many elements, and so many zeros."""

    tensor: str
    elements: int
    zeros: int
    offset: int = 0


class Loading:
    """The state of a load: every parameter's parts and what has been written there so far."""

    def __init__(self, parameters: Iterable[Parameter]) -> None:
        self._parameters = {parameter.name: parameter for parameter in parameters}
        self._writes: dict[tuple[str, int], _Write] = {}
        self._seen: dict[str, TensorHeader] = {}
        self._fates: dict[str, tuple[Fate, str]] = {}
        self._log: list[str] = []

    def __contains__(self, parameter: str) -> bool:
        """Whether there is a parameter of this name."""
        return parameter in self._parameters

    def has_module(self, name: str) -> bool:
        """Whether `name` is a parameter, or a part of the model that has some."""
        return name in self._parameters or any(p.startswith(f"{name}.") for p in self._parameters)

    def leave(self, tensor: TensorHeader, fate: Fate, reason: str) -> None:
        """Record that `tensor` goes into no parameter."""
        self._seen[tensor.name] = tensor
        self._fates[tensor.name] = (fate, reason)

    def log(self, line: str) -> None:
        """Record a line that the engine itself would print."""
        self._log.append(line)

    def place(self, tensor: TensorHeader, name: str, key: str | None = None) -> None:
        """Copy `tensor` into parameter `name`, or into its part `key`; raises Misfit."""
        parameter = self._parameters[name]
        self._seen[tensor.name] = tensor
        self._fates.pop(tensor.name, None)
        if key is None and len(parameter.parts) > 1:
            self._place_fused(tensor, parameter)
            return
        index = next(i for i, part in enumerate(parameter.parts) if part.key == key)
        self._writes[name, index] = _fitted(tensor, parameter, parameter.parts[index])

    def _place_fused(self, tensor: TensorHeader, parameter: Parameter) -> None:
        if len(tensor.shape) != len(parameter.shape) or tensor.shape[1:] != parameter.width:
            raise Misfit(_difference(tensor, parameter.name, parameter.shape))
        if tensor.shape[0] < parameter.rows:
            raise Misfit(_difference(tensor, parameter.name, parameter.shape))
        offset = 0
        for index, part in enumerate(parameter.parts):
            elements = part.rows * parameter.row_elements
            self._writes[parameter.name, index] = _Write(tensor.name, elements, 0, offset)
            offset += part.rows

    def landing(self, replaced: Mapping[str, FromTarget]) -> Landing:
        """The account of the load; `replaced` names what overwrites parameters after it."""
        parameters = tuple(
            ParameterLanding(
                name=parameter.name,
                shape=parameter.shape,
                segments=self._segments(parameter),
                replaced=replaced.get(parameter.name),
            )
            for parameter in self._parameters.values()
        )
        held: dict[str, int] = {}
        holders: dict[str, list[str]] = {}
        for (name, _), write in self._writes.items():
            held[write.tensor] = held.get(write.tensor, 0) + write.elements
            if name not in holders.setdefault(write.tensor, []):
                holders[write.tensor].append(name)
        tensors = tuple(
            self._tensor(tensor, holders.get(tensor.name, []), held.get(tensor.name, 0))
            for tensor in self._seen.values()
        )
        return Landing(tensors=tensors, parameters=parameters, log=tuple(self._log))

    def _tensor(self, tensor: TensorHeader, holders: list[str], held: int) -> TensorLanding:
        left = self._fates.get(tensor.name)
        if left is not None:
            fate, reason = left
        elif holders:
            fate, reason = Fate.LANDED, ""
        else:
            fate, reason = Fate.LOST, "a tensor that is read later overwrites it"
        return TensorLanding(
            name=tensor.name,
            shape=tensor.shape,
            dtype=tensor.dtype,
            fate=fate,
            parameters=tuple(holders),
            cut=prod(tensor.shape) - held if fate is Fate.LANDED else 0,
            reason=reason,
        )

    def _segments(self, parameter: Parameter) -> tuple[Segment, ...]:
        segments: list[Segment] = []
        row = 0
        for index, part in enumerate(parameter.parts):
            if not part.rows:
                continue
            write = self._writes.get((parameter.name, index))
            source = Unfilled(initialisation=parameter.initialisation)
            segments.append(
                Segment(
                    start=row,
                    stop=row + part.rows,
                    source=source if write is None else FromTensor(tensor=write.tensor),
                    role=part.role,
                    zeros=0 if write is None else write.zeros,
                    offset=0 if write is None else write.offset,
                )
            )
            row += part.rows
        if parameter.padding:
            filled = (parameter.name, 0) in self._writes
            unfilled = Unfilled(initialisation=parameter.initialisation)
            segments.append(
                Segment(
                    start=row,
                    stop=row + parameter.padding,
                    source=Padding() if filled else unfilled,
                    role=None,
                )
            )
        return tuple(segments)


def _fitted(tensor: TensorHeader, parameter: Parameter, part: Part) -> _Write:
    """How `tensor` fills `part`; raises Misfit where the loader would."""
    wanted = (part.rows, *parameter.width)
    size = prod(wanted)
    if tensor.shape == wanted:
        return _Write(tensor.name, size, 0)
    axis = {Fit.ROWS: 0, Fit.COLUMNS: 1}.get(parameter.fit)
    if axis is None or len(tensor.shape) != len(wanted) or axis >= len(wanted):
        raise Misfit(_difference(tensor, parameter.name, wanted))
    others_differ = any(
        have != want
        for i, (have, want) in enumerate(zip(tensor.shape, wanted, strict=True))
        if i != axis
    )
    too_small = tensor.shape[axis] < wanted[axis]
    if others_differ or (too_small and not part.pads):
        raise Misfit(_difference(tensor, parameter.name, wanted))
    elements = min(size, prod(tensor.shape))
    return _Write(tensor.name, elements, size - elements)


def _difference(tensor: TensorHeader, name: str, wanted: tuple[int, ...]) -> str:
    have = " x ".join(map(str, tensor.shape)) or "a scalar"
    want = " x ".join(map(str, wanted))
    return f"tensor {tensor.name} is {have}, but parameter {name} wants {want}"
