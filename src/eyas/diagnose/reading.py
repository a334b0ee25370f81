"""A drafter as its files declare it, made to run even where they contradict themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from eyas import dialects
from eyas.checkpoint import Checkpoint
from eyas.diagnose.causes import CauseId
from eyas.diagnose.difference import by_cause
from eyas.diagnose.variant import Variant, in_dtype, shapes_of
from eyas.errors import NotADrafterError, TargetError, UnsupportedError
from eyas.model.id_map import fault_of_map
from eyas.model.served import Fill, served_drafter
from eyas.model.target import Target
from eyas.model.weights import RoleTensors
from eyas.spec import (
    Boundaries,
    DefaultBoundaries,
    Eagle3Spec,
    Fact,
    Fused,
    Mha,
    Recognised,
    Served,
    VocabMap,
    boundaries_of,
    inferred,
)

# The norm of the state that stands beside the token's, and kinds that have no such place.
_EAGLE3S_OWN = re.compile(r"(midlayer|layers\.\d+)\.hidden_norm\.weight$")
_WITHOUT_STATES_IN_THE_LAYER = frozenset({"EAGLE-1", "Hydra", "MLPSpeculator", "Medusa"})
_WIDTHS = (64, 128, 32, 96, 80, 256)  # of a head, the common ones first


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What the files themselves lack or contradict, and the roles that they lack."""

    cause: CauseId
    what: str
    roles: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The drafter that the files declare. Where they lack a matrix `variant` has a neutral one."""

    variant: Variant
    faults: tuple[Fault, ...]
    absent: frozenset[str]


def declared(checkpoint: Checkpoint, target: Target) -> Declared:
    """`checkpoint` as its producer means it, with what is missing or misshapen named.

    Raises NotADrafterError where no dialect knows it, or its class is another kind's than its
    tensors; UnsupportedError for a drafter of another kind than EAGLE-3, or one that eyas cannot
    run.
    """
    _, spec = dialects.read(checkpoint)
    if isinstance(spec, Recognised) and spec.name in _WITHOUT_STATES_IN_THE_LAYER:
        own = next((name for name in checkpoint.tensors if _EAGLE3S_OWN.search(name)), None)
        if own is not None:
            raise NotADrafterError(
                f"{spec.why}, a class of {spec.name}, and {own} is of an EAGLE-3 layer"
            )
    if not isinstance(spec, Eagle3Spec):
        raise UnsupportedError(f"`{checkpoint.location}` is no EAGLE-3 drafter: {spec.unjudged}")
    held, unread = _held(checkpoint)
    spec, faults = _fitted(spec, held, target)
    shapes = shapes_of(spec, target)
    if "d2t" in shapes and "d2t" not in held and "t2d" in held:
        kept = held["t2d"].nonzero()[:, 0]
        held["d2t"] = kept - torch.arange(len(kept))
    absent = [
        role for role, shape in shapes.items() if role not in held or held[role].shape != shape
    ]
    unscaled = [role for role in absent if role in unread]
    if unscaled:
        what = f"{', '.join(unscaled)}: {', '.join(sorted({unread[r] for r in unscaled}))}"
        faults.append(Fault(cause=CauseId.UNSCALED, what=what))
    odd = [role for role in absent if role in held]
    if odd and not faults:
        faults.append(Fault(cause=CauseId.SHAPES, what=f"of another shape: {', '.join(odd)}"))
    missing = [role for role in absent if role not in held and role not in unread]
    faults += [
        Fault(cause=part.cause, what=f"not in the files: {part.what}", roles=part.roles)
        for part in by_cause(missing, shapes)
    ]
    holes = {role: neutral(role, shapes[role]) for role in absent}
    state = in_dtype({**{r: h for r, h in held.items() if r != "t2d"}, **holes}, target)
    if "d2t" in shapes:
        wrong = fault_of_map(state["d2t"], spec.vocab_map.value, len(target.embedding_VH))
        if wrong is not None:
            faults.append(Fault(cause=CauseId.MAP_WRONG, what=wrong))
            spec = replace(spec, vocab_map=inferred(VocabMap.PREFIX, spec.vocab_map.key))
            del state["d2t"]
    return Declared(
        variant=Variant(spec=spec, state=state), faults=tuple(faults), absent=frozenset(absent)
    )


def as_served(served: Served, checkpoint: Checkpoint, target: Target, fill: Fill) -> Variant:
    """The drafter as the engine has it, with `fill` for what nothing fills.

    Raises EngineError where it would crash, UnsupportedError where eyas cannot run it.
    """
    drafter = served_drafter(served, checkpoint, target, fill=fill)
    state = {role: held.detach() for role, held in drafter.state_dict().items()}
    return Variant(spec=drafter.spec, state=state)


def _held(checkpoint: Checkpoint) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Every role's values, and the type of those that cannot be read."""
    tensors = RoleTensors(checkpoint)
    held: dict[str, Tensor] = {}
    unread: dict[str, str] = {}
    for role in tensors.roles:
        try:
            held[role] = tensors.read(role)
        except UnsupportedError:
            name = tensors.tensor(role)
            unread[role] = checkpoint.tensors[name].dtype if name else "?"
    return held, unread


def neutral(role: str, shape: tuple[int, ...]) -> Tensor:
    """What does least in a matrix's place: ones in a norm, zeros elsewhere."""
    return torch.ones(shape) if "norm" in role else torch.zeros(shape)


def _fitted(
    spec: Eagle3Spec, held: Mapping[str, Tensor], target: Target
) -> tuple[Eagle3Spec, list[Fault]]:
    """`spec` with the sizes that the tensors have, and what that changed."""
    faults: list[Fault] = []

    def rows(role: str) -> int | None:
        return held[role].shape[0] if role in held and held[role].ndim else None

    sizes = {
        "hidden_size": rows("norm.weight"),
        "intermediate_size": rows("layers.0.mlp.gate_proj.weight"),
        "draft_vocab_size": rows("lm_head.weight"),
        "target_hidden_size": target.facts.hidden_size,
    }
    for name, size in sizes.items():
        stated: Fact[int] = getattr(spec, name)
        if size is not None and size != stated.value:
            what = f"{name} {stated.value} where the weights have {size}"
            faults.append(Fault(cause=CauseId.SHAPES, what=what))
            fact: dict[str, Any] = {name: inferred(size, stated.key)}
            spec = replace(spec, **fact)
    widest = target.facts.vocab_size
    if rows("embed_tokens.weight") is None and spec.vocab_size.value > widest:
        what = f"vocab_size {spec.vocab_size.value} where the target has {widest}"
        faults.append(Fault(cause=CauseId.SHAPES, what=what))
        spec = replace(spec, vocab_size=inferred(widest, spec.vocab_size.key))
    spec = _with_count(spec, held)
    spec, boundaries = _within_reach(spec, target.facts.num_layers)
    faults += boundaries
    attention = spec.attention
    q, k = rows("layers.0.self_attn.q_proj.weight"), rows("layers.0.self_attn.k_proj.weight")
    if isinstance(attention, Mha) and q and k:
        fitted = _heads(attention, q, k, target)
        if fitted is not attention:
            what = f"{_heads_text(attention)} where the weights have {_heads_text(fitted)}"
            faults.append(Fault(cause=CauseId.HEADS, what=what))
            spec = replace(spec, attention=fitted)
    return spec, faults


def _with_count(spec: Eagle3Spec, held: Mapping[str, Tensor]) -> Eagle3Spec:
    fused, fc = spec.conditioning, held.get("fc.weight")
    if not isinstance(fused, Fused) or fc is None or fc.ndim != 2:
        return spec
    count, rest = divmod(fc.shape[1], spec.target_hidden_size.value)
    if rest or count == fused.count.value:
        return spec
    return replace(spec, conditioning=replace(fused, count=inferred(count, fused.count.key)))


def _within_reach(spec: Eagle3Spec, num_layers: int) -> tuple[Eagle3Spec, list[Fault]]:
    """`spec` with as many boundaries as fc takes, all of them of the target."""
    fused = spec.conditioning
    if not isinstance(fused, Fused):
        return spec, []
    count, stated = fused.count.value, fused.boundaries.value
    try:
        known = boundaries_of(stated, num_layers)
    except TargetError as error:
        what, known = error.message, ()
    else:
        what = f"{len(known)} boundaries, and fc takes {count} states"
    if len(known) == count:
        return spec, []
    spread = tuple(round((i + 1) * num_layers / (count + 1)) for i in range(count))
    usual = DefaultBoundaries().of(num_layers) if count == 3 and num_layers > 6 else spread
    taken: Fact[Boundaries] = inferred(usual, fused.boundaries.key)
    fitted = replace(spec, conditioning=replace(fused, boundaries=taken))
    return fitted, [Fault(cause=CauseId.BOUNDARIES, what=what)]


def _heads(attention: Mha, q: int, k: int, target: Target) -> Mha:
    """`attention` where it explains the rows of q and k, else one that does."""
    heads, kv, dim = attention.num_heads, attention.num_kv_heads, attention.head_dim
    if heads.value * dim.value == q and kv.value * dim.value == k:
        return attention
    known = target.sizes.head_dim if target.sizes else dim.value
    for width in (known, dim.value, *_WIDTHS):
        if q % width == 0 and k % width == 0 and (q // width) % (k // width) == 0:
            return replace(
                attention,
                num_heads=inferred(q // width, heads.key),
                num_kv_heads=inferred(k // width, kv.key),
                head_dim=inferred(width, dim.key),
            )
    return attention


def _heads_text(attention: Mha) -> str:
    heads, kv = attention.num_heads.value, attention.num_kv_heads.value
    return f"{heads} heads, {kv} for keys, each {attention.head_dim.value} wide"
