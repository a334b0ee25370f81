"""What a drafter's chains would accept from every position of the answers, in one unrolling.

`train.unroll` computes what a chain of drafts sees, with the target's own tokens at every step. A
draft counts only where all before it were right, and there they are the same tokens: so the
products of the hits are exactly what verification accepts (`decode.replay`), at every position and
not only at those where rounds happened to start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from eyas.decode.acceptance import Acceptance
from eyas.decode.interval import LEVEL, Estimate, Interval
from eyas.diagnose.answers import Text
from eyas.diagnose.evidence import Batch, Evidence
from eyas.model.drafter import Drafter
from eyas.spec import VocabMap
from eyas.train.unroll import unroll

POSITIONS_PER_CHUNK = 1024
RESAMPLES = 1000
_TIES = 8  # logits as high as the truth's, among which the first is drafted
SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chains:
    """What a drafter did on the texts of the evidence, in their order.

    `accepted[t][i]` is the number of drafts accepted by a round that starts at the i-th slot of
    text t. `closeness[t, k]` is the mean over its slots of 1 - log(1 + rank) / log(1 + vocabulary)
    where rank is that of the target's token in the draft of step k: 1 where it is the first, near
    0 where it is the last or cannot be drafted. It tells drafters apart that accept nothing.
    """

    steps: int
    accepted: tuple[NDArray[np.int64], ...]
    closeness: NDArray[np.float64]

    @property
    def slots(self) -> NDArray[np.float64]:
        """The number of slots of each text."""
        return np.array([len(each) for each in self.accepted], dtype=np.float64)

    @property
    def expected_tau(self) -> float:
        """1 + the mean of what is accepted, were every slot the start of a round."""
        return 1.0 + float(np.concatenate(self.accepted).mean())

    @property
    def rates(self) -> tuple[float, ...]:
        """Share of the slots at which at least 1, 2, … drafts are accepted."""
        every = np.concatenate(self.accepted)
        return tuple(float((every > step).mean()) for step in range(self.steps))

    @property
    def nearness(self) -> float:
        """The closeness over all slots and steps."""
        return float(np.average(self.closeness.mean(axis=1), weights=self.slots))

    @property
    def rounds(self) -> Acceptance:
        """The rounds that decoding makes: the next one starts after what a round accepted."""
        return Acceptance.total([self.rounds_of(text) for text in range(len(self.accepted))])

    def rounds_of(self, text: int) -> Acceptance:
        """The rounds of one text, as `decode.replay` counts them."""
        accepted, found, slot = self.accepted[text], [], 0
        while slot < len(accepted):
            found.append(int(accepted[slot]))
            slot += found[-1] + 1
        return Acceptance.of(self.steps, found)

    def drafted(self, text: int) -> tuple[bool, ...]:
        """Which tokens of one answer were drafted; the first is the prompt's forward pass."""
        accepted = self.accepted[text]
        flags = [False] * (len(accepted) + 1)
        slot = 0
        while slot < len(accepted):
            count = int(accepted[slot])
            flags[slot + 1 : slot + 1 + count] = [True] * count
            slot += count + 1
        return tuple(flags[: len(accepted) + 1])

    @property
    def tau(self) -> Estimate:
        """tau of the rounds, and the bootstrap interval over the texts."""
        counts = np.array(
            [(r.accepted, r.rounds) for r in map(self.rounds_of, range(len(self.accepted)))],
            dtype=np.float64,
        )
        return _resampled(counts)

    @property
    def expected(self) -> Estimate:
        """`expected_tau` with its bootstrap interval over the texts."""
        return _resampled(np.stack([self.sums, self.slots], axis=-1))

    def loss_to(self, other: Chains) -> Estimate:
        """How much less `other` accepts a round, with the interval of the paired difference."""
        return _resampled(np.stack([self.sums - other.sums, self.slots], axis=-1), least=0.0)

    def gain_over(self, other: Chains, level: float = LEVEL) -> Estimate:
        """How much nearer it is than `other`, with the interval of the paired difference."""
        mine, theirs = (each.closeness.mean(axis=1) * self.slots for each in (self, other))
        return _resampled(np.stack([mine - theirs, self.slots], axis=-1), level=level, least=0.0)

    def differs_from(self, other: Chains) -> bool:
        """Whether a round anywhere would accept more or fewer drafts."""
        pairs = zip(self.accepted, other.accepted, strict=True)
        return any(not np.array_equal(*pair) for pair in pairs)

    @property
    def sums(self) -> NDArray[np.float64]:
        """The number of drafts accepted over all slots of each text."""
        return np.array([each.sum() for each in self.accepted], dtype=np.float64)


def _resampled(
    counts: NDArray[np.float64], *, level: float = LEVEL, least: float = 1.0
) -> Estimate:
    """`least` + sum / number over the texts' (sum, number), and its percentile interval."""
    total, number = counts.sum(axis=0)
    value = least + float(total / number)
    if len(counts) < 2:
        return Estimate(value=value, interval=None)
    random = np.random.default_rng(SEED)
    drawn = counts[random.integers(len(counts), size=(RESAMPLES, len(counts)))].sum(axis=1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [(1 - level) / 2, (1 + level) / 2])
    return Estimate(
        value=value, interval=Interval(low=least + float(low), high=least + float(high))
    )


@torch.inference_mode()
def chains(
    drafter: Drafter, evidence: Evidence, steps: int, *, shift: int = 0, every: bool = False
) -> Chains:
    """What `drafter` accepts on `evidence` in chains of `steps`.

    With `shift` each token is paired with the state of so many positions later. With `every` the
    closeness counts every step at every slot, else only where the chain is still right, which
    costs less. Raises TargetError for a boundary that the target does not have.
    """
    accepted: list[NDArray[np.int64]] = []
    closeness: list[NDArray[np.float64]] = []
    rank_of = _Ranks(drafter, evidence.target.facts.vocab_size)
    for batch in evidence.batches:
        captured = evidence.conditioned(batch, drafter.spec)
        if shift:
            captured = captured.roll(-shift, dims=1)
        hits_NK, near_NK = _hits(drafter, batch, captured, steps, rank_of, every=every)
        lengths = [len(text.starts) for text in batch.texts]
        for hits, near in zip(
            torch.split(hits_NK, lengths), torch.split(near_NK, lengths), strict=True
        ):
            accepted.append(hits.cumprod(dim=-1).sum(dim=-1).cpu().numpy())
            closeness.append(near.mean(dim=0).cpu().numpy())
    return Chains(steps=steps, accepted=tuple(accepted), closeness=np.stack(closeness))


def _hits(
    drafter: Drafter,
    batch: Batch,
    captured_BTC: Tensor,
    steps: int,
    rank_of: _Ranks,
    *,
    every: bool,
) -> tuple[Tensor, Tensor]:
    """At each start of the batch: which steps are right, and how near each is, both [N, K]."""
    rows, slots = _starts(batch.texts, captured_BTC.device)
    length = captured_BTC.shape[1]
    # the unrolling reads tokens from beyond the states too
    ids_BT = batch.ids_BT
    captured_BTC = F.pad(captured_BTC, (0, 0, 0, ids_BT.shape[1] - length))
    first = int(slots.min())
    hits = torch.zeros(len(rows), steps, dtype=torch.int64, device=rows.device)
    near = torch.zeros(len(rows), steps, dtype=torch.float64, device=rows.device)
    alive = torch.arange(len(rows), device=rows.device)
    for step, output_BTH in enumerate(unroll(drafter, ids_BT, captured_BTC, steps, first)):
        truth = ids_BT[rows[alive], slots[alive] + 2 + step]
        right, close = rank_of(output_BTH[rows[alive], slots[alive] - first], truth)
        hits[alive, step] = right.long()
        near[alive, step] = close
        if not every:
            alive = alive[right]
            if not len(alive):
                break
    return hits, near


def _starts(texts: Sequence[Text], device: torch.device) -> tuple[Tensor, Tensor]:
    rows = [row for row, text in enumerate(texts) for _ in text.starts]
    slots = [slot for text in texts for slot in text.starts]
    return torch.tensor(rows, device=device), torch.tensor(slots, device=device)


class _Ranks:
    """How high a drafter's head ranks given tokens of the target."""

    def __init__(self, drafter: Drafter, vocabulary: int) -> None:
        self._drafter = drafter
        head = drafter.head_VH
        draft_ids = torch.arange(len(head), device=head.device)
        identity = drafter.shape.vocab_map in (VocabMap.IDENTITY, VocabMap.PREFIX)
        target_ids = draft_ids if identity else drafter.target_ids(draft_ids)
        size = max(vocabulary, int(target_ids.max()) + 1)
        self._draft_id = torch.full((size,), -1, device=head.device)
        self._draft_id[target_ids] = draft_ids
        self._injective = len(torch.unique(target_ids)) == len(target_ids)
        self._scale = log(1 + len(head))

    def __call__(self, states_NH: Tensor, truth_N: Tensor) -> tuple[Tensor, Tensor]:
        """Whether the first draft is the truth, and the closeness, for each state."""
        found = [
            self._chunk(*pair)
            for pair in zip(
                torch.split(states_NH, POSITIONS_PER_CHUNK),
                torch.split(truth_N, POSITIONS_PER_CHUNK),
                strict=True,
            )
        ]
        right, close = zip(*found, strict=True)
        return torch.cat(right), torch.cat(close)

    def _chunk(self, states_NH: Tensor, truth_N: Tensor) -> tuple[Tensor, Tensor]:
        logits_NV = self._drafter.logits(states_NH)
        wanted = self._draft_id[truth_N]
        true_N1 = logits_NV.gather(1, wanted.clamp_min(0)[:, None])
        # an equal logit, or one that is no number, may be drafted as well: it counts as above
        above = (~(logits_NV < true_N1)).sum(dim=-1).double() - 1
        close = (1 - above.log1p() / self._scale).clamp_min(0)
        known = (wanted >= 0) & true_N1[:, 0].isfinite()
        # only an equal logit makes the first draft another one than the counts say
        right = above == 0
        doubtful = (above > 0) & (above < _TIES) if self._injective else known
        drafts = logits_NV[doubtful].argmax(dim=-1)
        right[doubtful] = self._drafter.target_ids(drafts) == truth_N[doubtful]
        return right & known, torch.where(known, close, torch.zeros_like(close))
