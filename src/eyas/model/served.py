"""A drafter as an engine will have it: built from the engine's own landing, not from the files."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from eyas.checkpoint import Checkpoint
from eyas.errors import EngineError, UnsupportedError
from eyas.model.drafter import Drafter
from eyas.model.fill import Fill, Filler
from eyas.model.id_map import fault_of_map
from eyas.model.landed import LandedWeights
from eyas.model.target import Target
from eyas.model.weights import RoleTensors
from eyas.spec import Eagle3Spec, Fused, Ownership, Served, VocabMap

__all__ = ["Fill", "served_drafter"]

_FUSION = ("fc.", "fc_norm.", "input_norm.")


def served_drafter(
    served: Served, checkpoint: Checkpoint, target: Target, *, fill: Fill, seed: int = 0
) -> Drafter:
    """`checkpoint` as `served` has it, ready to draft for `target`.

    Parameters that hold uninitialised memory get `fill`; what construction leaves there on
    purpose (ones, zeros, random numbers) is made the same way here. The result depends on `seed`
    and on nothing else that is random.

    Raises EngineError when the engine refuses the checkpoint or would crash with its map, and
    UnsupportedError for a drafter that eyas cannot run.
    """
    engine = f"{served.engine} {served.version}"
    if served.refusal is not None:
        raise EngineError(f"{engine} does not serve this drafter: {served.refusal.message}")
    if not isinstance(served.spec, Eagle3Spec) or served.landing is None:
        raise UnsupportedError("only EAGLE-3 drafters can be run as served")
    if served.slides is not None and served.slides.value:
        raise UnsupportedError(
            f"{engine} serves this drafter with a sliding window ({served.slides.key}), which"
            " cannot be run yet"
        )
    drafter = Drafter(served.spec, embedding=target.embedding_VH, head=target.head_VH)
    roles = {s.role for p in served.landing.parameters for s in p.segments if s.role is not None}
    _add_biases(drafter, roles)
    shapes = {role: tuple(held.shape) for role, held in drafter.state_dict().items()}
    _require_computed(roles - shapes.keys(), served.spec)
    landed = LandedWeights(served.landing, checkpoint, shapes, served.spec.attention)
    filler = Filler(RoleTensors(checkpoint), fill, seed)
    state = {role: landed.read(role, filler) for role in shapes}
    if "d2t" in state:
        state["d2t"] = _usable_map(state["d2t"], served.spec, target, engine)
    # first to the dtype, so that nothing is rounded twice on the way
    drafter = drafter.to(dtype=target.facts.dtype, device=target.embedding_VH.device)
    drafter.load_state_dict(state, strict=True)
    return drafter.eval()


def _add_biases(drafter: Drafter, roles: set[str]) -> None:
    """Give linear layers the biases that the engine makes, whether or not anything fills them."""
    for role in roles:
        name, _, kind = role.rpartition(".")
        if kind != "bias" or role in drafter.state_dict():
            continue
        try:
            module = drafter.get_submodule(name)
        except AttributeError:
            continue  # of a part that is never computed, which `_require_computed` looks at
        if isinstance(module, nn.Linear):
            module.bias = nn.Parameter(torch.zeros(module.out_features))


def _require_computed(surplus: set[str], spec: Eagle3Spec) -> None:
    """Raise UnsupportedError for a role of the engine that the drafter here lacks and needs."""
    for role in sorted(surplus):
        never_called = (
            (role.startswith(_FUSION) and not isinstance(spec.conditioning, Fused))
            or (role == "embed_tokens.weight" and spec.embedding.value is Ownership.TARGET)
            or (role == "lm_head.weight" and spec.head.value is not Ownership.OWN)
            or (role == "d2t" and spec.vocab_map.value is VocabMap.PREFIX)  # a map of zeros
        )
        if not never_called:
            raise UnsupportedError(f"the engine computes with `{role}`, which cannot be run yet")


def _usable_map(d2t: Tensor, spec: Eagle3Spec, target: Target, engine: str) -> Tensor:
    """`d2t` cut to the draft vocabulary; EngineError where an id would lie outside the target's."""
    size = spec.draft_vocab_size.value
    if d2t.ndim != 1 or len(d2t) < size:
        raise EngineError(
            f"{engine} would crash with this drafter: its map has shape {tuple(d2t.shape)} and its"
            f" head {size} rows"
        )
    d2t = d2t[:size].to(torch.int64)
    fault = fault_of_map(d2t, spec.vocab_map.value, len(target.embedding_VH))
    if fault is not None:
        raise EngineError(f"{engine} would crash with this drafter: {fault}")
    return d2t
