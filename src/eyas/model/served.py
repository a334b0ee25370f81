"""A drafter as an engine will have it: built from the engine's own landing, not from the files."""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor

from eyas import dialects
from eyas.checkpoint import Checkpoint
from eyas.errors import EngineError, UnsupportedError
from eyas.model.drafter import Drafter
from eyas.model.target import Target
from eyas.model.weights import read_tensor
from eyas.spec import (
    Eagle3Spec,
    FromTensor,
    Initialisation,
    Landing,
    Segment,
    Served,
    Unfilled,
)


class Fill(StrEnum):
    """What stands in for uninitialised memory, whose contents nobody can know.

    The truth of a server lies anywhere among these, so a result is given as the range over them.
    """

    ZEROS = "zeros"
    NORMAL = "normal"  # N(0, 0.02), a common initialisation
    SHUFFLED = "shuffled"  # the trained values in a random order: right in scale, void of meaning


def served_drafter(
    served: Served, checkpoint: Checkpoint, target: Target, *, fill: Fill, seed: int = 0
) -> Drafter:
    """`checkpoint` as `served` has it, ready to draft for `target`.

    Parameters that nothing fills hold `fill`, or ones where the engine's construction leaves
    ones. Raises EngineError when the engine refuses the checkpoint, and UnsupportedError for a
    drafter that eyas cannot run.
    """
    if served.refusal is not None:
        raise EngineError(
            f"{served.engine} {served.version} does not serve this drafter: "
            f"{served.refusal.message}"
        )
    if not isinstance(served.spec, Eagle3Spec) or served.landing is None:
        raise UnsupportedError("only EAGLE-3 drafters can be run as served")
    drafter = Drafter(served.spec, embedding=target.embedding_VH, head=target.head_VH)
    weights = _Weights(served.landing, checkpoint, fill, seed)
    state = {
        name: weights.role(name, tuple(held.shape)) for name, held in drafter.state_dict().items()
    }
    drafter.load_state_dict(state, strict=True)
    return drafter.to(dtype=target.facts.dtype, device=target.embedding_VH.device).eval()


class _Weights:
    """The drafter's matrices by role, put together from a landing's segments."""

    def __init__(self, landing: Landing, checkpoint: Checkpoint, fill: Fill, seed: int) -> None:
        self._checkpoint = checkpoint
        self._fill = fill
        self._random = torch.Generator().manual_seed(seed)
        self._segments: dict[str, Segment] = {}
        for parameter in landing.parameters:
            for segment in parameter.segments:
                if segment.role is not None:
                    self._segments[segment.role] = segment
        roles = dialects.recognise(checkpoint).roles(checkpoint)
        self._trained = {role: tensor for tensor, role in roles.items()}

    def role(self, name: str, shape: tuple[int, ...]) -> Tensor:
        if name == "d2t":
            return read_tensor(self._checkpoint, self._trained["d2t"])
        if name not in self._segments:
            raise UnsupportedError(f"no parameter of the engine is `{name}` alone")
        source = self._segments[name].source
        if isinstance(source, FromTensor):
            held = read_tensor(self._checkpoint, source.tensor)
            if tuple(held.shape) != shape:
                raise UnsupportedError(
                    f"`{source.tensor}` lands with another shape than it has, {tuple(held.shape)}"
                    f" in place of {shape}; a cut or padded tensor cannot be run yet"
                )
            return held
        if not isinstance(source, Unfilled):
            raise UnsupportedError(f"`{name}` is filled by {source}, which cannot be run yet")
        if source.initialisation is Initialisation.ONES:
            return torch.ones(shape)
        if source.initialisation is Initialisation.ZEROS or self._fill is Fill.ZEROS:
            return torch.zeros(shape)
        if self._fill is Fill.NORMAL:
            return torch.randn(shape, generator=self._random) * 0.02
        return self._shuffled(name, shape)

    def _shuffled(self, name: str, shape: tuple[int, ...]) -> Tensor:
        tensor = self._trained.get(name)
        if tensor is None:  # nothing was trained for it, so no scale is known either
            return torch.randn(shape, generator=self._random) * 0.02
        flat = read_tensor(self._checkpoint, tensor).flatten()
        return flat[torch.randperm(len(flat), generator=self._random)].reshape(shape)
