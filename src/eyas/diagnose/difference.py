"""What lies between two variants, in parts that can be applied one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import torch

from eyas.diagnose.causes import CauseId
from eyas.diagnose.facets import (
    ATTENTION,
    CONDITIONING,
    DEPTH,
    EMBEDDING,
    FUSION_BIAS,
    FUSION_NORMS,
    HEAD,
    MAP,
    SIZES,
    Setting,
    put,
    settings,
)
from eyas.diagnose.phrases import phrase
from eyas.diagnose.variant import Variant, shapes_of
from eyas.errors import EyasError
from eyas.model.target import Target
from eyas.spec import FromTensor, Fused, Landing, Ownership, Unfilled, VocabMap

_ATTENTION_ROLES = ("self_attn.",)
_LAYER_SHARE = 0.5  # of a layer's matrices: when more are lost, the layer is


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A part of the change from one variant to another: facets and roles that go together."""

    cause: CauseId
    what: str
    facets: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()


def applied(mine: Variant, theirs: Variant, parts: Iterable[Difference]) -> Variant:
    """`mine` with `parts` as `theirs` has them; what only `theirs` holds is held as well."""
    chosen = tuple(parts)
    facets = [facet for part in chosen for facet in part.facets]
    roles = {role for part in chosen for role in part.roles}
    changed = {role: held for role, held in theirs.state.items() if role in roles}
    state = {**theirs.state, **mine.state, **changed}
    return replace(put(mine, theirs, facets), state=state)


def differences(
    mine: Variant, theirs: Variant, target: Target, landing: Landing | None = None
) -> tuple[Difference, ...]:
    """The parts of the change from `mine` to `theirs`; `landing` tells why matrices differ."""
    layers = target.facts.num_layers
    found = settings(mine, theirs, layers)
    parts = [
        Difference(
            cause=setting.cause,
            what=f"{phrase(setting.facet, theirs, layers)} instead of"
            f" {phrase(setting.facet, mine, layers)}",
            facets=frozenset({setting.facet}),
        )
        for setting in found
    ]
    roles = _changed(mine, theirs, target)
    parts, roles = _with_roles(parts, roles, mine, theirs)
    parts = _bundled(parts, found, mine, theirs)
    known = frozenset(role for part in parts for role in part.roles)
    return (*parts, *_of_roles(roles - known, mine, Fillings.of(landing)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fillings:
    """Which roles an engine fills with a tensor of the drafter, of another file, or not at all."""

    filled: frozenset[str]
    unfilled: frozenset[str]
    stale: frozenset[str]

    @classmethod
    def of(cls, landing: Landing | None) -> Fillings:
        """The fillings of `landing`; a tensor of another file bears that file's name."""
        roles: dict[str, set[str]] = {"filled": set(), "unfilled": set(), "stale": set()}
        for parameter in () if landing is None else landing.parameters:
            for segment in parameter.segments:
                if segment.role is None:
                    continue
                if isinstance(segment.source, FromTensor):
                    kind = "stale" if " :: " in segment.source.tensor else "filled"
                    roles[kind].add(segment.role)
                elif isinstance(segment.source, Unfilled):
                    roles["unfilled"].add(segment.role)
        return cls(**{kind: frozenset(held) for kind, held in roles.items()})


def cause_of_role(role: str) -> CauseId:
    """What is lost with `role`."""
    if role == "fc.weight":
        return CauseId.FUSION_LOST
    if role.startswith("lm_head."):
        return CauseId.HEAD_LOST
    if role.startswith("embed_tokens."):
        return CauseId.EMBEDDING_WRONG
    if role == "d2t":
        return CauseId.MAP_LOST
    return CauseId.NORM_LOST if "norm" in role else CauseId.MATRIX_LOST


def by_cause(roles: Iterable[str], every: Iterable[str]) -> list[Difference]:
    """Lost `roles` in groups: a layer that lost most of its matrices is one."""
    rest, found = set(roles), []
    for layer in sorted({".".join(role.split(".")[:2]) for role in rest if role[:7] == "layers."}):
        own = {role for role in every if role.startswith(f"{layer}.")}
        lost = {role for role in rest if role.startswith(f"{layer}.")}
        if len(lost) > _LAYER_SHARE * len(own):
            what = f"{len(lost)} of the {len(own)} matrices of {layer}"
            found.append(Difference(cause=CauseId.LAYER_LOST, what=what, roles=frozenset(lost)))
            rest -= lost
    groups: dict[CauseId, set[str]] = {}
    for role in rest:
        groups.setdefault(cause_of_role(role), set()).add(role)
    for cause, held in groups.items():
        found.append(Difference(cause=cause, what=", ".join(sorted(held)), roles=frozenset(held)))
    return found


def _changed(mine: Variant, theirs: Variant, target: Target) -> frozenset[str]:
    """The roles of `theirs` that hold something else than in `mine`."""
    try:
        wanted = list(shapes_of(theirs.spec, target))
    except EyasError:  # an engine's reading that no drafter can be built of
        return frozenset()
    wanted += [role for role in theirs.state if role.endswith(".bias")]
    return frozenset(role for role in wanted if not _same(mine.state, theirs.state, role))


def _same(mine: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor], role: str) -> bool:
    a, b = mine.get(role), theirs.get(role)
    if b is None:
        return True
    if a is None:
        return role.endswith(".bias") and not bool(b.any())
    return a.shape == b.shape and torch.equal(a, b)


def _with_roles(
    parts: list[Difference], roles: frozenset[str], mine: Variant, theirs: Variant
) -> tuple[list[Difference], frozenset[str]]:
    """`parts` with the roles that change their shape, or come to be, because of them."""
    moved = {
        role
        for role in roles
        if role not in mine.state or mine.state[role].shape != theirs.state[role].shape
    }
    complete = []
    for part in parts:
        taken = frozenset(role for role in roles if _belongs(part, role, moved))
        complete.append(replace(part, roles=taken))
        roles -= taken
    return complete, roles


def _belongs(part: Difference, role: str, moved: set[str]) -> bool:
    if MAP in part.facets and role == "d2t":
        return True
    if HEAD in part.facets and role.startswith("lm_head."):
        return True
    if EMBEDDING in part.facets and role.startswith("embed_tokens."):
        return True
    if role not in moved:
        return False
    if ATTENTION in part.facets:
        return ".self_attn." in role
    if DEPTH in part.facets:
        return role.startswith("layers.")
    return bool(part.facets & {SIZES, CONDITIONING, FUSION_NORMS, FUSION_BIAS})


def _bundled(
    parts: list[Difference], found: list[Setting], mine: Variant, theirs: Variant
) -> list[Difference]:
    """One difference for what a launch that never fuses changes at once.

    Under the algorithm EAGLE the engines hand over one state, take the target's head, and no map.
    """
    if not isinstance(mine.spec.conditioning, Fused):
        return parts
    if isinstance(theirs.spec.conditioning, Fused):
        return parts
    together = {CONDITIONING, EMBEDDING}
    if theirs.spec.head.value is Ownership.TARGET:  # and not tied, which a config does alone
        together |= {HEAD}
    if theirs.spec.vocab_map.value is VocabMap.PREFIX:  # and not read in another form
        together |= {MAP}
    joined = [part for part in parts if part.facets & together]
    others = [part for part in parts if not part.facets & together]
    fusion = {role for role in mine.state if role.startswith(("fc.", "fc_norm.", "input_norm."))}
    bundle = Difference(
        cause=CauseId.FUSION_BYPASSED,
        what="; ".join(part.what for part in joined),
        facets=frozenset(facet for part in joined for facet in part.facets),
        roles=frozenset(role for part in joined for role in part.roles) | fusion,
    )
    return [bundle, *others]


def _of_roles(roles: frozenset[str], mine: Variant, fillings: Fillings) -> list[Difference]:
    stale = roles & fillings.stale
    cut = (roles & fillings.filled) - stale - {"d2t"}
    found = []
    if stale:
        what = f"{len(stale)} matrices of another file"
        found.append(Difference(cause=CauseId.STALE_FILE, what=what, roles=stale))
    if cut:
        what = f"cut or padded: {', '.join(sorted(cut))}"
        found.append(Difference(cause=CauseId.SHAPES, what=what, roles=cut))
    return [*found, *by_cause(roles - stale - cut, mine.state)]
