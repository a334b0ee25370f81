"""Greedy decoding, plain and with a drafter's chains.

With a drafter, each round drafts `steps` tokens in a chain and verifies them in one forward of
the target (Leviathan et al., arXiv 2211.17192; EAGLE-3, arXiv 2503.01840): the longest prefix
that equals the target's own argmax is accepted, and the target's next token is added to it. In
float32 the output is the target's own, whatever the drafter proposes. In bfloat16 or float16 a
forward of several tokens rounds unlike one of a single token, and may choose another argmax.

The drafter pairs token x[i+1] with the target's state at i. Rows drafted from its own feedback are
forgotten after each round and computed again from the target's states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor

from eyas.decode.acceptance import Acceptance
from eyas.decode.conditioning import boundaries_read, conditioned
from eyas.decode.generation import Generation
from eyas.decode.prefill import last_output, read_prompt
from eyas.errors import UsageError
from eyas.model.draft_cache import DraftCache
from eyas.model.drafter import Drafter
from eyas.model.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one forward of the target adds: accepted draft tokens, then the target's own token."""

    tokens: tuple[int, ...]
    gaps: tuple[float, ...]

    @property
    def accepted(self) -> int:
        """How many of the tokens were drafted."""
        return len(self.tokens) - 1


@torch.inference_mode()
def plain_rounds(target: Target, prompt: Sequence[int], *, max_new: int) -> Iterator[Round]:
    """The target alone, one token a round; the first round is the prompt's forward pass."""
    cache = target.new_cache(1, len(prompt) + max_new)
    reading = read_prompt(target, _row(prompt, target), cache)
    choice = _Choice.of(target, reading.final_BTH[:, -1:])
    yield Round(tokens=tuple(choice.ids), gaps=tuple(choice.gaps))
    for _ in range(max_new - 1):
        choice = _Choice.of(target, target.forward(choice.ids_1T, cache).final_BTH)
        yield Round(tokens=tuple(choice.ids), gaps=tuple(choice.gaps))


@torch.inference_mode()
def chain_rounds(
    target: Target, drafter: Drafter, prompt: Sequence[int], *, steps: int, max_new: int
) -> Iterator[Round]:
    """Draft `steps` tokens a round and verify them; the first round is the prompt's forward pass.

    Rounds go on until `max_new` tokens are out; the last one may run past it.
    """
    boundaries = boundaries_read(drafter, target)
    capacity = len(prompt) + max_new + steps + 1
    cache = target.new_cache(1, capacity)
    draft_cache = drafter.new_cache(1, capacity)
    prompt_1T = _row(prompt, target)
    reading = read_prompt(target, prompt_1T, cache, boundaries)
    choice = _Choice.of(target, reading.final_BTH[:, -1:])
    yield Round(tokens=tuple(choice.ids), gaps=tuple(choice.gaps))
    produced, seen = 1, len(prompt)
    last_11 = choice.ids_1T
    # the tokens that follow the states just read: the prompt without its first, and the new one
    following_1T = torch.cat([prompt_1T[:, 1:], last_11], dim=1)
    while produced < max_new:
        draft_cache.rollback(seen - following_1T.shape[1])
        hidden_1TH = conditioned(drafter, target, reading)
        drafts_1K = draft_chain(drafter, following_1T, hidden_1TH, draft_cache, steps)
        reading = target.forward(torch.cat([last_11, drafts_1K], dim=1), cache, boundaries)
        choice = _Choice.of(target, reading.final_BTH)
        drafts = drafts_1K[0].tolist()
        accepted = next((i for i, d in enumerate(drafts) if d != choice.ids[i]), steps)
        yield Round(
            tokens=(*drafts[:accepted], choice.ids[accepted]),
            gaps=tuple(choice.gaps[: accepted + 1]),
        )
        produced += accepted + 1
        seen += accepted + 1
        cache.rollback(seen)
        reading = reading.first(accepted + 1)
        following_1T = choice.ids_1T[:, : accepted + 1]
        last_11 = following_1T[:, -1:]


Hearer = Callable[[Sequence[int], int], None]


def _deaf(tokens: Sequence[int], drafted: int) -> None:
    """Hears of every round, and does nothing about it."""


def generate(
    target: Target,
    prompt: Sequence[int],
    *,
    max_new: int,
    drafter: Drafter | None = None,
    steps: int = 0,
    stop_at_eos: bool = True,
    hear: Hearer = _deaf,
) -> Generation:
    """Answer `prompt` greedily with at most `max_new` tokens, ending at an EOS id of the target.

    Without `stop_at_eos` an answer has `max_new` tokens, whatever is among them. `hear` is given
    the tokens of each round as it ends, and how many of them, from the first, were drafted; the
    time that it takes is not in `seconds`.
    Raises UsageError for an empty prompt, a limit below one token, or a drafter without steps.
    """
    if not prompt:
        raise UsageError("the prompt holds no token")
    if max_new < 1 or (drafter is not None and steps < 1):
        raise UsageError("at least one new token and, with a drafter, one draft step are needed")
    if drafter is None:
        rounds = plain_rounds(target, prompt, max_new=max_new)
    else:
        rounds = chain_rounds(target, drafter, prompt, steps=steps, max_new=max_new)
    ends = frozenset(target.facts.eos_ids) if stop_at_eos else frozenset()
    tokens: list[int] = []
    gaps: list[float] = []
    accepted: list[int] = []
    seconds = 0.0
    while len(tokens) < max_new and ends.isdisjoint(tokens[-1:]):
        started = perf_counter()
        step = next(rounds)
        if tokens:  # the first round is the prompt's forward pass
            seconds += perf_counter() - started
            accepted.append(step.accepted)
        kept = _kept(step.tokens, ends, max_new - len(tokens))
        tokens += step.tokens[:kept]
        gaps += step.gaps[:kept]
        hear(step.tokens[:kept], min(step.accepted, kept))
    return Generation(
        tokens=tuple(tokens),
        seconds=seconds,
        gaps=tuple(gaps),
        acceptance=None if drafter is None else Acceptance.of(steps, accepted),
    )


def _kept(tokens: Sequence[int], ends: frozenset[int], room: int) -> int:
    """How many of a round's tokens belong to the answer: up to its end, and to its limit."""
    end = next((i + 1 for i, token in enumerate(tokens) if token in ends), len(tokens))
    return min(end, room)


def draft_chain(
    drafter: Drafter, ids_1T: Tensor, hidden_1TH: Tensor, cache: DraftCache, steps: int
) -> Tensor:
    """A chain of `steps` draft tokens, as target ids [1, steps], after the pairs that are given."""
    drafted = []
    for _ in range(steps):
        output_11H = last_output(drafter, ids_1T, hidden_1TH, cache)
        hidden_1TH = drafter.feedback(output_11H)
        ids_1T = drafter.target_ids(drafter.logits(output_11H).argmax(dim=-1))
        drafted.append(ids_1T)
    return torch.cat(drafted, dim=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """The target's argmax at each position, and its lead over the next token."""

    ids_1T: Tensor
    ids: list[int]
    gaps: list[float]

    @classmethod
    def of(cls, target: Target, final_1TH: Tensor) -> _Choice:
        top = target.logits(final_1TH).topk(2, dim=-1)
        ids_1T = top.indices[..., 0]
        gaps = (top.values[..., 0].float() - top.values[..., 1].float())[0]
        return cls(ids_1T=ids_1T, ids=ids_1T[0].tolist(), gaps=gaps.tolist())


def _row(prompt: Sequence[int], target: Target) -> Tensor:
    return torch.tensor([list(prompt)], device=target.embedding_VH.device)
