"""Where a contract and an engine disagree about a drafter: the engine is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from eyas.probe.facts import fact_disagreements
from eyas.probe.observed import Observed, ObservedParameter, ObservedSegment
from eyas.spec import (
    Fate,
    FromTensor,
    Landing,
    Padding,
    ParameterLanding,
    Segment,
    Served,
    Stage,
    Unfilled,
)

_BESIDE = (Stage.JOIN, Stage.FIRST_REQUEST)
_NOWHERE = (Fate.LOST, Fate.IGNORED)
_WORDS = {"memory": "uninitialised memory"}  # a probe's word for what a Landing calls otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """One point: what the engine did, and what the contract says."""

    subject: str
    engine: str
    contract: str

    def __str__(self) -> str:
        """In one line."""
        return f"{self.subject}: the engine {self.engine}, the contract says {self.contract}"


def disagreements(
    served: Served, observed: Observed, files: Sequence[str]
) -> tuple[Disagreement, ...]:
    """Everything in which `served` differs from what was `observed`.

    `files` are the weight files that belong to the drafter: a tensor of another file that the
    engine reads too bears that file's name in a Landing.
    """
    return tuple(_disagreements(served, observed.within(files)))


def _disagreements(served: Served, observed: Observed) -> Iterator[Disagreement]:
    if served.runner != observed.runner:
        yield Disagreement(
            subject="runner", engine=f"uses {observed.runner}", contract=str(served.runner)
        )
    different = _ending(served, observed)
    if different is not None:
        yield different
        return
    ended = observed.raised
    if not observed.parameters and not observed.tensors:
        # llama.cpp loads all of a file or none, and its probe sees no more than what it is then
        yield from _facts(served, observed)
        return
    if ended is None or ended.stage in _BESIDE:
        if served.landing is None and served.refusal is not None:
            return  # it says that the engine raises, and where: that is met
        if served.landing is None:
            yield Disagreement(
                subject="landing", engine="loads it", contract="nothing of what it loads"
            )
            return
        yield from _tensors(served.landing, observed)
        yield from _parameters(served.landing, observed)
        for line in served.landing.log:
            if not any(line in printed for printed in observed.log):
                yield Disagreement(subject="log", engine="does not print it", contract=line)
        yield from _facts(served, observed)


def _facts(served: Served, observed: Observed) -> Iterator[Disagreement]:
    for subject, theirs, ours in fact_disagreements(served, observed):
        yield Disagreement(subject=subject, engine=f"has {theirs}", contract=str(ours))


def _ending(served: Served, observed: Observed) -> Disagreement | None:
    """Where one raises and the other does not, or elsewhere."""
    raised, refusal = observed.raised, served.refusal
    if raised is not None and raised.stage == Stage.FIRST_REQUEST and raised.kind == "IndexError":
        raised = None  # the numbers of an id map, which no loader looks at and `check` does
    if raised is None and refusal is None:
        return None
    if raised is None and not observed.joined and refusal is not None and refusal.stage in _BESIDE:
        return None
    engine = "serves it"
    if raised is not None:
        engine = f"raises at {raised.stage} ({raised.kind}: {raised.message[:160]})"
    contract = "it is served"
    if refusal is not None:
        contract = f"it raises at {refusal.stage} ({refusal.message[:160]})"
    if raised is not None and refusal is not None and raised.stage == refusal.stage:
        return None
    return Disagreement(subject="outcome", engine=engine, contract=contract)


def _tensors(landing: Landing, observed: Observed) -> Iterator[Disagreement]:
    ours = {tensor.name: tensor for tensor in landing.tensors}
    for theirs in observed.tensors:
        name = theirs.name
        tensor = ours.get(name)
        if tensor is None:
            if theirs.fate != "lost":
                yield Disagreement(
                    subject=f"tensor {name}", engine=f"has it {theirs.fate}", contract="nothing"
                )
            continue
        if not tensor.elements:
            continue  # nothing of it could be found again
        fate = theirs.fate
        told = tensor.fate.value
        if tensor.fate in _NOWHERE:
            told = "lost"
        elif tensor.fate is Fate.LANDED and tensor.cut:
            told = "short"
        homes = (sorted(set(theirs.parameters)), sorted(tensor.parameters))
        if (fate if fate != "ignored" else "lost", homes[0]) != (told, homes[1]):
            yield Disagreement(
                subject=f"tensor {name}",
                engine=_in_words(fate, theirs.parameters),
                contract=_in_words(told, tensor.parameters),
            )
        elif fate == "short" and theirs.cut != tensor.cut:
            yield Disagreement(
                subject=f"tensor {name}",
                engine=f"leaves {theirs.cut} of its elements out",
                contract=f"{tensor.cut}",
            )


def _in_words(fate: str, parameters: tuple[str, ...]) -> str:
    where = f" in {', '.join(parameters)}" if parameters else ""
    return f"has it {fate}{where}"


def _parameters(landing: Landing, observed: Observed) -> Iterator[Disagreement]:
    ours = {parameter.name: parameter for parameter in landing.parameters}
    theirs = {parameter.name: parameter for parameter in observed.parameters}
    for name in sorted(set(ours) - set(theirs)):
        yield Disagreement(subject=f"parameter {name}", engine="has none", contract="it is there")
    for name, real in theirs.items():
        if name not in ours:
            yield Disagreement(
                subject=f"parameter {name}", engine="has it", contract="it is not there"
            )
            continue
        told = ours[name]
        if told.shape != real.shape:
            yield Disagreement(
                subject=f"parameter {name}",
                engine=f"has it of shape {list(real.shape)}",
                contract=f"{list(told.shape)}",
            )
            continue
        for segment in told.segments:
            wrong = _segment_fault(segment, told, real)
            if wrong is not None:
                yield Disagreement(
                    subject=f"parameter {name}, rows {segment.start} to {segment.stop}",
                    engine=f"has {wrong}",
                    contract=_told(segment),
                )
        if observed.raised is not None and observed.raised.stage == Stage.JOIN:
            continue  # how far it came with the target's matrices is of no account
        replaced = None if told.replaced is None else told.replaced.what
        if replaced != observed.overwritten.get(name):
            yield Disagreement(
                subject=f"parameter {name} after joining the target",
                engine=f"has {observed.overwritten.get(name, 'its own')}",
                contract=replaced or "its own",
            )


def _told(segment: Segment) -> str:
    source = segment.source
    if isinstance(source, FromTensor):
        zeros = f" and {segment.zeros} zeros" if segment.zeros else ""
        return f"{source.tensor} from row {segment.offset}{zeros}"
    if isinstance(source, Unfilled):
        return str(source.initialisation)
    return "zeros" if isinstance(source, Padding) else str(source)


def _segment_fault(
    segment: Segment, parameter: ParameterLanding, real: ObservedParameter
) -> str | None:
    """What is really in the rows of `segment`, where it is not what it says; else None."""
    width = prod(parameter.shape[1:])
    pieces = [piece for piece in real.segments if _overlap(piece, segment)]
    zeros = 0
    for piece in pieces:
        begin, end = max(piece.start, segment.start), min(piece.stop, segment.stop)
        share = piece.zeros * (end - begin) // (piece.stop - piece.start)
        if not _agrees(segment, piece, begin):
            return _found(piece)
        zeros += share
    if isinstance(segment.source, FromTensor) and zeros != segment.zeros:
        return f"{zeros} zeros there"
    if isinstance(segment.source, Padding) and zeros != (segment.stop - segment.start) * width:
        return f"{zeros} zeros there"
    return None


def _overlap(piece: ObservedSegment, segment: Segment) -> bool:
    return piece.start < segment.stop and segment.start < piece.stop


def _agrees(segment: Segment, piece: ObservedSegment, begin: int) -> bool:
    """Whether `piece` may be part of `segment`, as far as the tensor and its rows go."""
    source = segment.source
    if piece.also:
        return False
    if isinstance(source, Unfilled):
        word = _WORDS.get(piece.left or "", piece.left)
        return piece.tensor is None and word == source.initialisation.value and not piece.zeros
    if isinstance(source, Padding):
        return piece.tensor is None and not piece.untouched and piece.left is None
    if not isinstance(source, FromTensor) or piece.untouched or piece.left is not None:
        return False
    if piece.tensor is None:
        return bool(piece.zeros)  # rows that the loader filled up
    if source.tensor != piece.tensor:
        return False
    if piece.offset is None:
        return True
    row = piece.offset + begin - piece.start
    return row == segment.offset + begin - segment.start


def _found(piece: ObservedSegment) -> str:
    if piece.also:
        return f"{piece.tensor} and {', '.join(piece.also)} in the same rows"
    if piece.tensor is not None:
        rest = f", {piece.untouched} elements untouched" if piece.untouched else ""
        return f"{piece.tensor} from row {piece.offset}{rest}"
    if piece.left is not None:
        return str(_WORDS.get(piece.left, piece.left))
    return "zeros"
