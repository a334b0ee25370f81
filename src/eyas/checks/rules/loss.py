"""Loss and Gap: what an engine leaves out, and what it leaves unfilled, paired by role."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eyas.checks.view import View
from eyas.spec import Initialisation, Landing, LastState, Unfilled, Unfused

FUSED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}
BEFORE_FC: tuple[str, ...] = ("fc.", "fc_norm.", "input_norm.")
LAYER = re.compile(r"layers\.(\d+)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Rows of a parameter that nothing fills. `rows` is empty where it is the whole parameter."""

    parameter: str
    rows: str
    role: str | None
    initialisation: Initialisation


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Tensors that land nowhere, with the gaps that they were meant for."""

    what: str
    tensors: tuple[str, ...]
    reason: str
    gaps: tuple[Gap, ...]


def parts_of(role: str) -> tuple[str, ...]:
    """The matrices that a tensor of `role` holds: three for a fused q, k and v, mostly one."""
    for fused, parts in FUSED.items():
        if f".{fused}." in role:
            return tuple(role.replace(fused, part) for part in parts)
    return (role,)


def lost_with_role(view: View, landing: Landing) -> list[Loss]:
    """Each lost tensor that the drafter computes with."""
    roles = view.trained.roles
    meant_for: dict[str, list[Gap]] = {}
    for gap in _all_gaps(landing):
        if gap.role is not None:
            meant_for.setdefault(gap.role, []).append(gap)
    return [
        Loss(
            what=tensor.name,
            tensors=(tensor.name,),
            reason=tensor.reason,
            gaps=tuple(
                gap for part in parts_of(roles[tensor.name]) for gap in meant_for.get(part, ())
            ),
        )
        for tensor in landing.lost
        if tensor.name in roles
    ]


def dropped_layers(view: View, landing: Landing) -> list[Loss]:
    """The layers of which every tensor is lost, as one loss; layers of one tensor do not count."""
    roles = view.trained.roles
    present = _by_layer(roles[t.name] for t in landing.tensors if t.name in roles)
    lost = [t for t in landing.lost if t.name in roles]
    gone = _by_layer(roles[t.name] for t in lost)
    layers = {n for n, names in gone.items() if len(names) > 1 and names == present[n]}
    members = [t for t in lost if _layer(roles[t.name]) in layers]
    if not members:
        return []
    what = "the decoder layer" if len(layers) == 1 else f"{len(layers)} decoder layers"
    return [
        Loss(
            what=what,
            tensors=tuple(t.name for t in members),
            reason=members[0].reason,
            gaps=tuple(g for g in _all_gaps(landing) if _layer(g.role) in layers),
        )
    ]


def gaps(view: View, landing: Landing) -> list[list[Gap]]:
    """The gaps that no lost tensor explains, those of decoder layers together.

    Left out are parameters that the engine never computes with, and biases of zeros.
    """
    roles = view.trained.roles
    unused = BEFORE_FC if bypasses_fc(view) else ()
    explained = {p for t in landing.lost if t.name in roles for p in parts_of(roles[t.name])}
    groups: dict[str, list[Gap]] = {}
    for gap in _all_gaps(landing):
        if gap.role is None or gap.role in explained or _changes_nothing(gap):
            continue
        if gap.role.startswith(unused):
            continue
        key = gap.parameter if _layer(gap.role) is None else "layers"
        groups.setdefault(key, []).append(gap)
    return list(groups.values())


def bypasses_fc(view: View) -> bool:
    """Whether the engine computes with nothing up to fc, which F301 tells where it is a loss."""
    conditioning = getattr(view.served.spec, "conditioning", None)
    return isinstance(conditioning, LastState | Unfused)


def _changes_nothing(gap: Gap) -> bool:
    is_bias = gap.role is not None and gap.role.endswith(".bias")
    return is_bias and gap.initialisation is Initialisation.ZEROS


def effect_of(initialisations: Sequence[Initialisation]) -> str:
    """What it costs that parameters hold `initialisations`; empty where there are none."""
    held = set(initialisations)
    parts = []
    if Initialisation.MEMORY in held:
        parts.append("its matrices hold uninitialised memory")
    if Initialisation.RANDOM in held:
        parts.append("its matrices hold random numbers")
    if Initialisation.ZEROS in held:
        parts.append("its matrices are zeros" if len(held) == 1 else "some are zeros")
    if Initialisation.ONES in held:
        parts.append("its norms are ones")
    if not parts:
        return ""
    gone = held & {Initialisation.MEMORY, Initialisation.RANDOM}
    tail = "acceptance collapses (1.00 to 1.2 seen)" if gone else "every draft step differs"
    return f"{', '.join(parts)}; {tail}"


def _all_gaps(landing: Landing) -> list[Gap]:
    """Every row of every parameter that nothing fills, after sharing."""
    return [
        Gap(
            parameter=parameter.name,
            rows=""
            if segment.stop - segment.start == parameter.shape[0]
            else f" (rows {segment.start} to {segment.stop})",
            role=segment.role,
            initialisation=segment.source.initialisation,
        )
        for parameter in landing.unfilled
        for segment in parameter.segments
        if isinstance(segment.source, Unfilled)
    ]


def _layer(role: str | None) -> int | None:
    """The number of the decoder layer that `role` belongs to."""
    found = None if role is None else LAYER.match(role)
    return None if found is None else int(found.group(1))


def _by_layer(roles: Iterable[str]) -> dict[int, set[str]]:
    layers: dict[int, set[str]] = {}
    for role in roles:
        layer = _layer(role)
        if layer is not None:
            layers.setdefault(layer, set()).add(role)
    return layers
