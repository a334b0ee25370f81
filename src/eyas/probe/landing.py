"""What was observed, in the form of a Landing."""

from __future__ import annotations

from math import prod

from eyas.checkpoint import Checkpoint, TensorHeader
from eyas.engines.delivered import delivered
from eyas.probe.observed import Observed, ObservedSegment, ObservedTensor
from eyas.spec import (
    Fate,
    FromTarget,
    FromTensor,
    Initialisation,
    Landing,
    Padding,
    ParameterLanding,
    Segment,
    TensorLanding,
    Unfilled,
)
from eyas.spec.landing import SegmentSource

_LEFT = {
    "memory": Initialisation.MEMORY,
    "ones": Initialisation.ONES,
    "zeros": Initialisation.ZEROS,
    "random": Initialisation.RANDOM,
}


def landing_of(observed: Observed, checkpoint: Checkpoint) -> Landing:
    """The Landing of what the engine did with `checkpoint`.

    A segment has no role: a probe sees numbers, and does not know what they are for.
    """
    seen = observed.within(checkpoint.files)
    headers = dict(checkpoint.tensors)
    for name, header in delivered(checkpoint).tensors.items():
        headers.setdefault(f"{header.file} :: {name}", header)
    return Landing(
        tensors=tuple(_tensor(t, headers[t.name]) for t in seen.tensors if t.name in headers),
        parameters=tuple(
            ParameterLanding(
                name=parameter.name,
                shape=parameter.shape,
                segments=tuple(map(_segment, parameter.segments)),
                replaced=_replaced(seen, parameter.name),
            )
            for parameter in seen.parameters
        ),
        log=seen.log,
    )


def _replaced(observed: Observed, parameter: str) -> FromTarget | None:
    what = observed.overwritten.get(parameter)
    return None if what is None else FromTarget(what=what)


def _tensor(tensor: ObservedTensor, header: TensorHeader) -> TensorLanding:
    fate = Fate.LANDED if tensor.fate == "short" else Fate(tensor.fate)
    return TensorLanding(
        name=tensor.name,
        shape=header.shape,
        dtype=header.dtype,
        fate=fate,
        parameters=tensor.parameters,
        cut=min(tensor.cut, prod(header.shape)) if fate is Fate.LANDED else 0,
        reason="found in no parameter" if fate is Fate.LOST else "",
    )


def _segment(segment: ObservedSegment) -> Segment:
    return Segment(
        start=segment.start,
        stop=segment.stop,
        source=_source(segment),
        role=None,
        zeros=segment.zeros if segment.tensor is not None else 0,
        offset=segment.offset or 0,
    )


def _source(segment: ObservedSegment) -> SegmentSource:
    if segment.tensor is not None:
        return FromTensor(tensor=segment.tensor)
    if segment.left is not None:
        return Unfilled(initialisation=_LEFT[segment.left])
    return Padding()
