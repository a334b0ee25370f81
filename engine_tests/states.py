"""What went through an engine's drafter, beside eyas's own drafter on the same tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor

from eyas.decode.conditioning import boundaries_read, conditioned
from eyas.model.drafter import Drafter
from eyas.model.target import Target

Call = Mapping[
    str, Tensor
]  # ids, positions, hidden, pre_norm, post_norm; of a first call, captured


@dataclass(slots=True)
class Differences:
    """The largest relative difference of each kind of state, and how many rows were compared.

    A row's difference is its norm over the norm of eyas's own row.
    """

    largest: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    rows: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def note(self, kind: str, theirs_TH: Tensor, ours_TH: Tensor) -> None:
        """Compares rows."""
        assert theirs_TH.shape == ours_TH.shape
        apart = (theirs_TH - ours_TH).norm(dim=-1) / ours_TH.norm(dim=-1)
        self.largest[kind] = max(self.largest[kind], float(apart.max()))
        self.rows[kind] += len(apart)


def calls_of(tensors: Mapping[str, Tensor]) -> list[list[Call]]:
    """The engine's calls of its drafter, round by round: one over states, then one a draft step."""
    calls: dict[int, dict[str, Tensor]] = defaultdict(dict)
    for name, tensor in tensors.items():
        index, _, what = name.partition(".")
        calls[int(index)][what] = tensor
    rounds: list[list[Call]] = []
    for _, call in sorted(calls.items()):
        if "captured" in call:
            rounds.append([])
        rounds[-1].append(call)
    return rounds


@torch.inference_mode()
def differences(
    target: Target, drafter: Drafter, ids: Sequence[int], rounds: Sequence[Sequence[Call]]
) -> Differences:
    """Compares every round but the last, whose accepted rows are not known.

    `ids` is the prompt with its answer. An engine also hands rejected rows to its drafter: those
    from where the next round begins are left out.
    """
    found = Differences()
    ids_1T = torch.tensor([list(ids)])
    cache = target.new_cache(1, len(ids))
    reading = target.forward(ids_1T, cache, boundaries_read(drafter, target))
    assert reading.captured_BTC is not None
    fused_1TH = conditioned(drafter, target, reading)
    draft_cache = drafter.new_cache(1, len(ids) + 8)
    for this, following in pairwise(rounds):
        begin, end = (int(calls[0]["positions"][0]) for calls in (this, following))
        first, count = this[0], end - begin
        boundaries = reading.captured_BTC[0, begin:end].chunk(3, dim=-1)
        for theirs, ours in zip(
            first["captured"][:count].chunk(3, dim=-1), boundaries, strict=True
        ):
            found.note("captured", theirs, ours)
        found.note("fused", first["fused"][:count], fused_1TH[0, begin:end])
        draft_cache.rollback(begin)
        hidden_1TH = fused_1TH[:, begin:end]
        for call, rows in _with_rows(this, count):
            output_1TH = drafter.step(call["ids"][None, :rows].long(), hidden_1TH, draft_cache)
            found.note("pre-norm", call["pre_norm"][:rows], output_1TH[0])
            found.note("post-norm", call["post_norm"][:rows], drafter.norm(output_1TH)[0])
            hidden_1TH = drafter.feedback(output_1TH[:, -1:])
        assert first["ids"][:count].tolist() == list(ids[begin + 1 : end + 1])
    return found


def _with_rows(calls: Sequence[Call], count: int) -> Iterator[tuple[Call, int]]:
    """Each call of a round with the number of its rows that are real."""
    for index, call in enumerate(calls):
        yield call, count if index == 0 else 1
