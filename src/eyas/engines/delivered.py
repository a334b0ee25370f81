"""What reaches an engine's loader where a directory holds more weight files than the drafter's."""

from __future__ import annotations

from dataclasses import replace

from eyas.checkpoint import Checkpoint, Format, read_headers
from eyas.engines.stop import NotCovered
from eyas.spec import Fate, FromTensor, Landing, Segment, TensorLanding


def delivered(checkpoint: Checkpoint) -> Checkpoint:
    """`checkpoint` with every tensor that engines read, of equal names the one read last.

    Both engines read all .safetensors of a directory without an index in the order of their names
    (vLLM 0.32.0, vllm/model_executor/model_loader/weight_utils.py). Raises CheckpointError for a
    file that is not sound, and NotCovered where the drafter's own is a pickle: all the pickles of
    a directory are read, in an order that no contract knows, and none where there are safetensors.
    """
    if checkpoint.rival is None:
        return checkpoint
    if checkpoint.format is Format.PICKLE:
        raise NotCovered(
            f"{checkpoint.location} also holds {checkpoint.rival}, and eyas does not know which of"
            f" it and {checkpoint.files[0]} an engine reads last: remove what is not the drafter"
        )
    strays = [name for name in checkpoint.other_files if not name.startswith("consolidated")]
    tensors = dict(checkpoint.tensors)
    for file in sorted((*checkpoint.files, *strays)):
        for name, header in read_headers(checkpoint.directory, file).items():
            tensors.pop(name, None)  # what is read later is placed later
            tensors[name] = header
    return replace(checkpoint, tensors=tensors)


def told_apart(landing: Landing, checkpoint: Checkpoint, read: Checkpoint) -> Landing:
    """`landing` of all that was `read`, in terms of the drafter's own tensors.

    A tensor of another file bears that file's name, and the drafter's own that it overwrites is
    lost.
    """
    foreign = _foreign(checkpoint, read)
    overwritten = tuple(
        TensorLanding(
            name=tensor.name,
            shape=checkpoint.tensors[tensor.name].shape,
            dtype=checkpoint.tensors[tensor.name].dtype,
            fate=Fate.IGNORED if tensor.fate is Fate.IGNORED else Fate.LOST,
            reason=f"{read.tensors[tensor.name].file} holds it too and is read later",
        )
        for tensor in landing.tensors
        if tensor.name in foreign and tensor.name in checkpoint.tensors
    )
    tensors = tuple(replace(t, name=foreign.get(t.name, t.name)) for t in landing.tensors)
    parameters = tuple(
        replace(p, segments=tuple(_renamed(s, foreign) for s in p.segments))
        for p in landing.parameters
    )
    return replace(landing, tensors=(*tensors, *overwritten), parameters=parameters)


def with_others(checkpoint: Checkpoint) -> Checkpoint:
    """`checkpoint` with the tensors of other files too, by the names that `told_apart` gives."""
    read = delivered(checkpoint)
    others = {told: read.tensors[name] for name, told in _foreign(checkpoint, read).items()}
    return replace(checkpoint, tensors={**checkpoint.tensors, **others}) if others else checkpoint


def _foreign(checkpoint: Checkpoint, read: Checkpoint) -> dict[str, str]:
    """What the tensors of files beside the drafter's own are called, by their names there."""
    return {
        name: f"{header.file} :: {name}"
        for name, header in read.tensors.items()
        if header.file not in checkpoint.files
    }


def _renamed(segment: Segment, names: dict[str, str]) -> Segment:
    source = segment.source
    if not isinstance(source, FromTensor) or source.tensor not in names:
        return segment
    return replace(segment, source=FromTensor(tensor=names[source.tensor]))
