"""Replay: what a drafter's chains accept of an answer that is already there.

Verification holds drafts against the target's own next tokens and nothing else, so the rounds over
a greedy answer follow from one reading of it. In float32 they are those of decoding; in bfloat16
decoding may choose other tokens at near-ties, and a replay stays with the answer that it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import torch
from torch import Tensor

from eyas.decode.acceptance import Acceptance
from eyas.decode.conditioning import boundaries_read, conditioned
from eyas.decode.greedy import draft_chain
from eyas.decode.prefill import read_prompt
from eyas.errors import UsageError
from eyas.model.drafter import Drafter
from eyas.model.target import Reading, Target


@torch.inference_mode()
def replay(
    target: Target,
    drafter: Drafter,
    prompt: Sequence[int],
    answer: Sequence[int],
    *,
    steps: int,
) -> Acceptance:
    """The rounds of `generate` with `drafter`, when what it answers is `answer`.

    `answer` is the target's own greedy one, the token of the prompt's forward pass included.
    Raises UsageError for an empty prompt or answer, or no draft step.
    """
    if not prompt or not answer or steps < 1:
        raise UsageError("a replay needs a prompt, an answer and at least one draft step")
    ids_1T, reading = _read(target, [*prompt, *answer], boundaries_read(drafter, target), steps)
    ids = ids_1T[0].tolist()
    cache = drafter.new_cache(1, len(ids) + steps)
    accepted: list[int] = []
    begin, seen = 0, len(prompt)
    while seen - len(prompt) + 1 < len(answer):
        cache.rollback(begin)
        hidden_1TH = conditioned(drafter, target, _between(reading, begin, seen))
        drafts_1K = draft_chain(drafter, ids_1T[:, begin + 1 : seen + 1], hidden_1TH, cache, steps)
        pairs = zip(drafts_1K[0].tolist(), ids[seen + 1 : seen + 1 + steps], strict=True)
        accepted.append(sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)))
        begin, seen = seen, seen + accepted[-1] + 1
    return Acceptance.of(steps, accepted)


def _read(
    target: Target, ids: Sequence[int], boundaries: Sequence[int], beyond: int
) -> tuple[Tensor, Reading]:
    """`ids` with `beyond` greedy tokens more, which the last rounds draft past the answer's end."""
    ids_1T = torch.tensor([list(ids)], device=target.embedding_VH.device)
    cache = target.new_cache(1, len(ids) + beyond)
    reading = read_prompt(target, ids_1T, cache, boundaries)
    final_1TH = reading.final_BTH
    for _ in range(beyond):
        next_11 = target.logits(final_1TH[:, -1:]).argmax(dim=-1)
        ids_1T = torch.cat([ids_1T, next_11], dim=1)
        final_1TH = target.forward(next_11, cache).final_BTH
    return ids_1T, reading


def _between(reading: Reading, begin: int, end: int) -> Reading:
    captured = reading.captured_BTC
    return Reading(
        final_BTH=reading.final_BTH[:, begin:end],
        captured_BTC=None if captured is None else captured[:, begin:end],
    )
