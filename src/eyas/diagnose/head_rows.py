"""Which tokens the rows of a drafter's head stand for, told by the target's own head.

Producers start a head from the target's rows, and training leaves them near: in the drafter that
was trained here each of 8,192 rows is nearer to its own token's row than to any other, with a
median cosine of 0.82.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from eyas.diagnose.causes import CauseId
from eyas.diagnose.change import Change, with_facts
from eyas.diagnose.facets import MAP
from eyas.diagnose.variant import Variant
from eyas.model.target import Target
from eyas.spec import Ownership, VocabMap

SAMPLE = 512  # rows that are looked at first
NEAR = 0.5  # the median cosine below which a head is not told by the target's
CLEAR = 0.1  # how much nearer another token's row is before a row is taken for it
_ROWS = 256  # that are compared together


def renamed(variant: Variant, target: Target) -> Change | None:
    """The map, or the order of the rows, that the head itself asks for; None where it is right.

    None too where the head is not the drafter's own or is not near the target's.
    """
    head_VH = variant.state.get("lm_head.weight")
    if variant.spec.head.value is not Ownership.OWN or head_VH is None:
        return None
    if head_VH.shape[1] != target.head_VH.shape[1] or not bool(head_VH.isfinite().all()):
        return None
    mapped = _mapped(variant, variant.spec.vocab_map.value, len(head_VH))
    sample = torch.arange(0, len(head_VH), max(len(head_VH) // SAMPLE, 1))
    everything = torch.arange(len(target.head_VH))
    best, near, own = _nearest(head_VH[sample], target.head_VH, everything, mapped[sample])
    clear = (best != mapped[sample]) & (near - own > CLEAR)
    if float(near.median()) < NEAR or not bool(clear.any()):
        return None
    form = _other_form(variant, len(head_VH), sample, best)
    if form is not None:
        return form
    image = torch.unique(mapped)
    inside = bool(torch.isin(best[clear], image).all())
    among = image if inside else everything
    ids_V, _, _ = _nearest(head_VH, target.head_VH, among, mapped)
    return _change(variant, mapped, _each_once(ids_V, image) if inside else ids_V, permuted=inside)


def _mapped(variant: Variant, form: VocabMap, rows: int) -> Tensor:
    """The target id of each row, as `form` reads the map."""
    plain = torch.arange(rows)
    d2t = variant.state.get("d2t")
    if d2t is None or form not in (VocabMap.OFFSETS, VocabMap.ABSOLUTE):
        return plain
    numbers = d2t[:rows].to(torch.int64)
    return numbers + plain if form is VocabMap.OFFSETS else numbers


def _nearest(
    rows_NH: Tensor, head_VH: Tensor, among: Tensor, mapped: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """For each row: the token of `among` whose row is nearest, its cosine, and that of `mapped`."""
    tokens = F.normalize(head_VH[among].float(), dim=-1)
    rows = F.normalize(rows_NH.float(), dim=-1)
    near, best = zip(
        *((rows_N @ tokens.T).max(-1) for rows_N in torch.split(rows, _ROWS)), strict=True
    )
    known = mapped.clamp(0, len(head_VH) - 1)
    own = (rows * F.normalize(head_VH[known].float(), dim=-1)).sum(-1)
    own = torch.where(known == mapped, own, torch.full_like(own, -1.0))
    return among[torch.cat(best)], torch.cat(near), own


def _each_once(ids_V: Tensor, image: Tensor) -> Tensor:
    """`ids_V` where tokens that two rows claim, alike as some special ones are, go to one each."""
    order = torch.argsort(ids_V, stable=True)
    again = torch.zeros(len(ids_V), dtype=torch.bool)
    again[order[1:]] = ids_V[order[1:]] == ids_V[order[:-1]]
    free = image[~torch.isin(image, ids_V)]
    taken = min(int(again.sum()), len(free))
    places = again.nonzero()[:taken, 0]
    found = ids_V.clone()
    found[places] = free[:taken]
    return found


def _other_form(variant: Variant, rows: int, sample: Tensor, best: Tensor) -> Change | None:
    """The same numbers read in another way, where that names the rows' own tokens."""
    if "d2t" not in variant.state:
        return None
    for form in (VocabMap.ABSOLUTE, VocabMap.OFFSETS):
        agreeing = (_mapped(variant, form, rows)[sample] == best).float().mean()
        if form is not variant.spec.vocab_map.value and float(agreeing) > 0.9:
            return Change(
                cause=CauseId.MAP_ABSOLUTE,
                what=f"d2t holds {'ids' if form is VocabMap.ABSOLUTE else 'offsets'}, and is read"
                f" as {variant.spec.vocab_map.value}",
                variant=with_facts(variant, vocab_map=form),
                facets=frozenset({MAP}),
                proven=True,
            )
    return None


def _change(variant: Variant, mapped: Tensor, ids_V: Tensor, *, permuted: bool) -> Change:
    others = int((ids_V != mapped).sum())
    told = f"{others} of {len(ids_V)} rows of the head are nearest to another token's row"
    in_order = bool((mapped.diff() > 0).all())
    if permuted and in_order and len(torch.unique(ids_V)) == len(ids_V):
        place = torch.full((int(mapped.max()) + 1,), -1)
        place[mapped] = torch.arange(len(mapped))
        head = torch.empty_like(variant.state["lm_head.weight"])
        head[place[ids_V]] = variant.state["lm_head.weight"]
        return Change(
            cause=CauseId.HEAD_ROWS,
            what=f"{told}, which the map has elsewhere: the rows are in another order",
            variant=variant.with_state({"lm_head.weight": head}),
            roles=frozenset({"lm_head.weight"}),
            proven=True,
        )
    lost = "d2t" not in variant.state
    offsets = ids_V - torch.arange(len(ids_V))
    changed = with_facts(variant, vocab_map=VocabMap.OFFSETS)
    return Change(
        cause=CauseId.MAP_LOST if lost else CauseId.MAP_WRONG,
        what=f"{told} than the map's" if not lost else f"{told}, and there is no map",
        variant=replace(changed, state={**variant.state, "d2t": offsets}),
        facets=frozenset({MAP}),
        roles=frozenset({"d2t"}),
        proven=True,
    )
