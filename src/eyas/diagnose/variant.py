"""Variant: a drafter as a spec and its matrices by role, so that parts of two can be mixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from eyas.errors import CheckpointError
from eyas.model.drafter import Drafter
from eyas.model.id_map import fault_of_map
from eyas.model.target import Target
from eyas.spec import Eagle3Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What fixes a drafter's arithmetic. `state` may hold more roles than the spec has.

    `shift` says how many positions later the state is that a token is paired with; 0 is EAGLE's.
    """

    spec: Eagle3Spec
    state: Mapping[str, Tensor]
    shift: int = 0

    def with_state(self, changed: Mapping[str, Tensor]) -> Variant:
        """The same with some roles holding something else."""
        return replace(self, state={**self.state, **changed})


def built(variant: Variant, target: Target) -> Drafter:
    """`variant` as a module in the target's dtype, which shares its matrices.

    Raises CheckpointError for a role that is missing or of another shape, and for a map that
    leaves the target's vocabulary; UnsupportedError for a spec that eyas cannot run.
    """
    drafter = empty(variant.spec, target)
    _add_biases(drafter, variant.state)
    wanted = drafter.state_dict()
    state = {role: _held(variant, role, tuple(hole.shape), target) for role, hole in wanted.items()}
    if "d2t" in state:
        fault = fault_of_map(state["d2t"], variant.spec.vocab_map.value, len(target.embedding_VH))
        if fault is not None:
            raise CheckpointError(fault)
    drafter.load_state_dict(state, strict=True, assign=True)
    return drafter.eval()


def empty(spec: Eagle3Spec, target: Target) -> Drafter:
    """The module of `spec` without memory for its matrices."""
    with torch.device("meta"):
        return Drafter(spec, embedding=target.embedding_VH, head=target.head_VH)


def shapes_of(spec: Eagle3Spec, target: Target) -> dict[str, tuple[int, ...]]:
    """The shape of every matrix that a drafter of `spec` has, by role."""
    return {role: tuple(held.shape) for role, held in empty(spec, target).state_dict().items()}


def _held(variant: Variant, role: str, shape: tuple[int, ...], target: Target) -> Tensor:
    held = variant.state.get(role)
    if held is None:
        raise CheckpointError(f"there is nothing to fill `{role}` with")
    if tuple(held.shape) != shape:
        raise CheckpointError(f"`{role}` is {tuple(held.shape)} where {shape} is needed")
    device = target.embedding_VH.device
    if role == "d2t":
        return held.to(device=device, dtype=torch.int64)
    return held.to(device=device, dtype=target.facts.dtype)


def _add_biases(drafter: Drafter, roles: Iterable[str]) -> None:
    """Give linear layers the biases that `roles` hold, as an engine that makes them does."""
    own = drafter.state_dict()
    for role in roles:
        name, _, kind = role.rpartition(".")
        if kind != "bias" or role in own:
            continue
        try:
            module = drafter.get_submodule(name)
        except AttributeError:
            continue  # of a part that is never computed
        if isinstance(module, nn.Linear):
            module.bias = nn.Parameter(torch.zeros(module.out_features, device="meta"))


def in_dtype(state: Mapping[str, Tensor], target: Target) -> dict[str, Tensor]:
    """`state` in the target's dtype, so that every variant shares it."""
    dtype, device = target.facts.dtype, target.embedding_VH.device
    return {
        role: held.to(device=device, dtype=torch.int64 if role == "d2t" else dtype)
        for role, held in state.items()
    }
