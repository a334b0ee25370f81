"""Candidates: what a checkpoint may have been trained for instead of what it declares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

from eyas.checkpoint import TargetFacts
from eyas.diagnose.causes import CauseId
from eyas.diagnose.change import KEY, Change, with_facts, with_fusion
from eyas.diagnose.facets import (
    ATTENTION,
    BOUNDARIES,
    CONDITIONING,
    EMBEDDING,
    EPS,
    FEEDBACK,
    FUSION_NORMS,
    HEAD,
    MAP,
    RESIDUAL,
    ROPE,
    SHIFT,
)
from eyas.diagnose.variant import Variant
from eyas.errors import TargetError
from eyas.model.target import Target
from eyas.spec import (
    DefaultBoundaries,
    Feedback,
    Fused,
    LastState,
    Mha,
    Ownership,
    Rope,
    VocabMap,
    boundaries_of,
    inferred,
)

THETAS = (1e4, 1e5, 5e5, 1e6, 1e7)
NEAR, FAR = (-2, -1, 1, 2), (-8, -4, 4, 8)
USUAL_EPS = 1e-5
LARGEST_EPS = 1e-4  # below it no state is small enough to feel it
FIRST = "layers.0."


def candidates(
    variant: Variant, target: Target, facts: TargetFacts, *, far: bool = False
) -> Iterator[Change]:
    """Every single change that is tried; with `far`, captured states from further away alone."""
    yield from _boundaries(variant, target.facts.num_layers, FAR if far else NEAR, far=far)
    if far:
        return
    yield from _fusion_norms(variant)
    yield from _switches(variant)
    yield from _rope(variant, facts)
    yield from _rows(variant)
    yield from _heads(variant)
    yield from _vocabulary(variant)
    for shift in (-1, 1):
        if variant.shift != shift:
            what = f"tokens paired with the state of position {shift:+d}"
            changed = replace(variant, shift=shift)
            yield Change(
                cause=CauseId.TOKEN_SHIFT,
                what=what,
                variant=changed,
                facets=frozenset({SHIFT}),
            )


def _boundaries(
    variant: Variant, num_layers: int, steps: tuple[int, ...], *, far: bool
) -> Iterator[Change]:
    fused = variant.spec.conditioning
    if not isinstance(fused, Fused):
        return
    now = boundaries_of(fused.boundaries.value, num_layers)
    sets = [tuple(k + step for k in now) for step in steps if not far]
    sets += [(*now[:i], k + step, *now[i + 1 :]) for i, k in enumerate(now) for step in steps]
    if not far:
        sets += list(permutations(now)) if len(now) <= 3 else [tuple(reversed(now))]
        sets += _default(num_layers, len(now))
    for chosen in dict.fromkeys(sets):
        distinct = len(set(chosen)) == len(chosen)
        if chosen != now and distinct and all(0 <= k <= num_layers for k in chosen):
            yield Change(
                cause=CauseId.BOUNDARIES,
                what=f"boundaries {_listed(chosen)} instead of {_listed(now)}",
                variant=with_fusion(variant, fused, boundaries=chosen),
                facets=frozenset({BOUNDARIES}),
            )


def _default(num_layers: int, count: int) -> list[tuple[int, ...]]:
    try:
        states = DefaultBoundaries().of(num_layers)
    except TargetError:
        return []
    return [states] if len(states) == count else []


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def _fusion_norms(variant: Variant) -> Iterator[Change]:
    spec, facet = variant.spec, frozenset({FUSION_NORMS})
    fused = spec.conditioning
    if isinstance(fused, LastState):
        after = not fused.after_final_norm.value
        changed = replace(fused, after_final_norm=inferred(after, KEY))
        yield Change(
            cause=CauseId.NORMS,
            what=f"the last state from {'after' if after else 'before'} the final norm",
            variant=replace(variant, spec=replace(spec, conditioning=changed)),
            facets=frozenset({CONDITIONING}),
        )
    if not isinstance(fused, Fused):
        return
    width, count = spec.target_hidden_size.value, fused.count.value
    ones = {
        "input_norm": {"input_norm.weight": torch.ones(width * count)},
        "fc_norm": {f"fc_norm.{i}.weight": torch.ones(width) for i in range(count)},
    }
    for flag, gains in ones.items():
        on = not getattr(fused, flag).value
        added = {role: gain for role, gain in gains.items() if role not in variant.state}
        yield Change(
            cause=CauseId.NORMS,
            what=f"{flag} {'on' if on else 'off'}",
            variant=with_fusion(variant, fused, **{flag: on}).with_state(added),
            facets=facet,
        )


def _switches(variant: Variant) -> Iterator[Change]:
    spec = variant.spec
    post = spec.feedback.value is Feedback.PRE_NORM
    feedback = Feedback.POST_NORM if post else Feedback.PRE_NORM
    yield Change(
        cause=CauseId.FEEDBACK,
        what=f"feedback {feedback} instead of {spec.feedback.value}",
        variant=with_facts(variant, feedback=feedback),
        facets=frozenset({FEEDBACK}),
    )
    before = not spec.norm_before_residual.value
    yield Change(
        cause=CauseId.RESIDUAL,
        what=f"norm_before_residual {_word(before)} instead of {_word(not before)}",
        variant=with_facts(variant, norm_before_residual=before),
        facets=frozenset({RESIDUAL}),
    )
    if spec.rms_norm_eps.value > LARGEST_EPS:
        yield Change(
            cause=CauseId.NORMS,
            what=f"rms_norm_eps {USUAL_EPS:g} instead of {spec.rms_norm_eps.value:g}",
            variant=with_facts(variant, rms_norm_eps=USUAL_EPS),
            facets=frozenset({EPS}),
        )


def _word(flag: bool) -> str:
    return str(flag).lower()


def _rope(variant: Variant, facts: TargetFacts) -> Iterator[Change]:
    now = variant.spec.rope.value
    ropes = [Rope(theta=theta, kind=now.kind, scaling=now.scaling) for theta in THETAS]
    ropes.append(Rope(theta=now.theta, kind="default"))
    if facts.rope is not None:
        theirs = facts.rope
        ropes += [theirs, Rope(theta=theirs.theta, kind="default")]
        ropes.append(Rope(theta=now.theta, kind=theirs.kind, scaling=theirs.scaling))
    tried: list[Rope] = [now]
    for rope in ropes:
        if rope in tried:
            continue
        tried.append(rope)
        yield Change(
            cause=CauseId.ROPE,
            what=f"RoPE base {rope.theta:g}, {rope.kind}, instead of {now.theta:g}, {now.kind}",
            variant=with_facts(variant, rope=rope),
            facets=frozenset({ROPE}),
        )


def _rows(variant: Variant) -> Iterator[Change]:
    """Matrices that took each other's place, and rows in another order."""
    pairs = (
        (CauseId.NORMS_SWAPPED, "hidden_norm.weight", "input_layernorm.weight"),
        (CauseId.GATE_UP_SWAPPED, "mlp.gate_proj.weight", "mlp.up_proj.weight"),
        (CauseId.KV_SWAPPED, "self_attn.k_proj.weight", "self_attn.v_proj.weight"),
    )
    for cause, first, second in pairs:
        a, b = (variant.state.get(FIRST + name) for name in (first, second))
        if a is not None and b is not None and a.shape == b.shape:
            roles = {FIRST + first: b, FIRST + second: a}
            yield _swapped(variant, cause, f"{first} and {second} exchanged", roles)
    attention = variant.spec.attention
    if not isinstance(attention, Mha):
        return
    q, k = (FIRST + f"self_attn.{part}_proj.weight" for part in "qk")
    orders = {"halves for neighbours": _to_halves, "neighbours for halves": _to_neighbours}
    for name, order in orders.items():
        moved = {
            role: order(variant.state[role], heads.value)
            for role, heads in ((q, attention.num_heads), (k, attention.num_kv_heads))
            if role in variant.state and variant.state[role].shape[0] % (2 * heads.value) == 0
        }
        choices = [moved, *({role: rows} for role, rows in moved.items())]
        for roles in choices if moved else []:
            which = " and ".join(role.split(".")[-2] for role in roles)
            what = f"the rows of {which} {name}"
            yield _swapped(variant, CauseId.ROWS_PERMUTED, what, roles)


def _swapped(variant: Variant, cause: CauseId, what: str, roles: dict[str, Tensor]) -> Change:
    return Change(cause=cause, what=what, variant=variant.with_state(roles), roles=frozenset(roles))


def _to_halves(rows: Tensor, heads: int) -> Tensor:
    """Rows of neighbouring pairs, llama.cpp's order, as the two halves of each head."""
    return rows.reshape(heads, -1, 2, rows.shape[1]).transpose(1, 2).reshape(rows.shape)


def _to_neighbours(rows: Tensor, heads: int) -> Tensor:
    return rows.reshape(heads, 2, -1, rows.shape[1]).transpose(1, 2).reshape(rows.shape)


def _heads(variant: Variant) -> Iterator[Change]:
    attention = variant.spec.attention
    if not isinstance(attention, Mha) or attention.qk_norm.value:
        return
    heads, kv, dim = (
        f.value for f in (attention.num_heads, attention.num_kv_heads, attention.head_dim)
    )
    for times, by in ((2, 1), (3, 1), (4, 1), (1, 2), (1, 3), (1, 4)):
        sizes = heads * times // by, kv * times // by, dim * by // times
        whole = (heads * times % by, kv * times % by, dim * by % (2 * times))
        if any(whole) or sizes[0] % max(sizes[1], 1):
            continue
        names = ("num_heads", "num_kv_heads", "head_dim")
        facts: dict[str, Any] = {
            name: inferred(size, KEY) for name, size in zip(names, sizes, strict=True)
        }
        changed = replace(variant.spec, attention=replace(attention, **facts))
        yield Change(
            cause=CauseId.HEADS,
            what=f"{sizes[0]} heads of {sizes[2]} instead of {heads} of {dim}",
            variant=replace(variant, spec=changed),
            facets=frozenset({ATTENTION}),
        )


def _vocabulary(variant: Variant) -> Iterator[Change]:
    spec = variant.spec
    if "d2t" in variant.state:
        for form in VocabMap:
            if form is spec.vocab_map.value or form is VocabMap.IDENTITY:
                continue
            read = form is not VocabMap.PREFIX
            yield Change(
                cause=CauseId.MAP_ABSOLUTE if read else CauseId.MAP_WRONG,
                what=f"d2t read as {form}" if read else "no map: the first ids of the target",
                variant=with_facts(variant, vocab_map=form),
                facets=frozenset({MAP}),
            )
    if spec.embedding.value is Ownership.OWN:
        yield Change(
            cause=CauseId.EMBEDDING_WRONG,
            what="the target's embedding instead of its own",
            variant=with_facts(variant, embedding=Ownership.TARGET),
            facets=frozenset({EMBEDDING}),
        )
    if spec.head.value is Ownership.TIED or spec.head.value is Ownership.TARGET:
        own = "lm_head.weight" in variant.state
        for whose in (Ownership.TARGET, *([Ownership.OWN] if own else [])):
            if whose is not spec.head.value:
                name = "the target's" if whose is Ownership.TARGET else "its own"
                yield Change(
                    cause=CauseId.HEAD_TIED,
                    what=f"{name} head",
                    variant=with_facts(variant, head=whose),
                    facets=frozenset({HEAD}),
                )
