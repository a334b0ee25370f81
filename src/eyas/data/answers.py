"""The target's own answers to prompts, generated in batches: on-policy training text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from eyas.data.answer_settings import AnswerSettings, keep_settings
from eyas.data.conversation import Conversation, write_shard
from eyas.data.loops import looped_from
from eyas.data.prompts import Prompt
from eyas.decode.prefill import read_prompt
from eyas.model.llama import LlamaTarget

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

LOOP_CHECK_EVERY = 16
BATCHES_PER_WINDOW = 6
# Of a batch's rows: when so many have ended, those that go on are moved together, which costs.
DONE_SHARE = 0.25


@dataclass(slots=True)
class _Row:
    prompt: Prompt
    prompt_ids: list[int]
    temperature: float
    answer: list[int]


def answer_prompts(
    target: LlamaTarget,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[Prompt],
    directory: Path,
    settings: AnswerSettings,
    progress: Callable[[Path, Sequence[Conversation]], None],
) -> None:
    """Answer every prompt into `directory`, one shard a batch; a shard that exists is kept.

    Prompts longer than `max_prompt_tokens` are left out. Raises UsageError when the directory's
    settings.json names another target, other settings or other prompts.
    """
    keep_settings(directory, target.facts.name, settings, prompts)
    for number, rows in enumerate(_batches(tokenizer, prompts, settings)):
        file = directory / f"answers-{number:05d}.jsonl"
        if file.exists():
            continue
        generator = torch.Generator().manual_seed(settings.seed * 1_000_003 + number)
        with torch.device(target.device):
            _generate(target, rows, settings.max_new_tokens, generator)
        conversations = [c for row in rows if (c := _finished(row)) is not None]
        write_shard(file, conversations)
        progress(file, conversations)


def _batches(
    tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Prompt], settings: AnswerSettings
) -> Iterator[list[_Row]]:
    """Batches of rows, alike in prompt length: every row pays for the longest one's padding."""
    rows = []
    for index, prompt in enumerate(prompts):
        ids = chat_ids(tokenizer, prompt)
        if len(ids) <= settings.max_prompt_tokens:
            temperature = settings.temperatures[index % len(settings.temperatures)]
            rows.append(_Row(prompt, ids, temperature, []))
    window = settings.batch_size * BATCHES_PER_WINDOW
    for first in range(0, len(rows), window):
        # sorted within a window alone, so that the first shards are as mixed as the last
        alike = sorted(rows[first : first + window], key=lambda row: len(row.prompt_ids))
        for begin in range(0, len(alike), settings.batch_size):
            yield alike[begin : begin + settings.batch_size]


def chat_ids(tokenizer: PreTrainedTokenizerBase, prompt: Prompt) -> list[int]:
    """The prompt through the target's chat template, up to the assistant's turn."""
    ids = tokenizer.apply_chat_template(
        prompt.as_chat(), add_generation_prompt=True, tokenize=True, return_dict=False
    )
    return list(ids)


def _finished(row: _Row) -> Conversation | None:
    answer = row.answer[: looped_from(row.answer)]
    if not answer:
        return None
    return Conversation(
        id=row.prompt.id,
        category=row.prompt.category,
        ids=tuple(row.prompt_ids + answer),
        prompt_length=len(row.prompt_ids),
        temperature=row.temperature,
    )


def _generate(
    target: LlamaTarget, rows: list[_Row], max_new: int, generator: torch.Generator
) -> None:
    if not rows:
        return
    longest = max(len(row.prompt_ids) for row in rows)
    starts_B = torch.tensor([longest - len(row.prompt_ids) for row in rows])
    ids_BT = torch.tensor([[0] * (longest - len(row.prompt_ids)) + row.prompt_ids for row in rows])
    cache = target.new_cache(len(rows), longest + max_new, starts_B)
    eos = set(target.facts.eos_ids)
    going = list(range(len(rows)))  # each row's place in the batch; those that end leave it later
    size = len(rows)
    final_BTH = read_prompt(target, ids_BT, cache).final_BTH
    for step in range(max_new):
        final_BH = final_BTH[:, -1]
        # only rows that go on draw random numbers, so that what they draw hangs on no other row
        temperatures_B = torch.tensor([row.temperature for row in rows])
        chosen_B = choose(target.logits(final_BH[going]), temperatures_B, generator)
        kept = []
        for index, (row, token) in enumerate(zip(rows, chosen_B.tolist(), strict=True)):
            row.answer.append(token)
            looks = step % LOOP_CHECK_EVERY == 0
            if token not in eos and not (looks and looped_from(row.answer) is not None):
                kept.append(index)
        if not kept:
            return
        rows, going = [rows[index] for index in kept], [going[index] for index in kept]
        if size - len(going) >= DONE_SHARE * size:
            cache.keep_rows(torch.tensor(going))
            going, size = list(range(len(going))), len(going)
        # a row that has ended and not left reads any token: nothing reads it
        ids_BT = torch.zeros(size, 1, dtype=torch.int64)
        ids_BT[going, 0] = chosen_B[kept]
        final_BTH = target.forward(ids_BT, cache).final_BTH


def choose(logits_BV: Tensor, temperatures_B: Tensor, generator: torch.Generator) -> Tensor:
    """The next id of every row: the argmax at temperature 0, else a sample by inverse CDF."""
    chosen_B = logits_BV.argmax(dim=-1)
    sampled = (temperatures_B > 0).nonzero()[:, 0]
    if len(sampled):
        scaled = logits_BV[sampled].float() / temperatures_B[sampled, None]
        cumulative = scaled.softmax(dim=-1).cumsum(dim=-1)
        # drawn where the generator is: the same numbers whatever computes the logits
        share = torch.rand(len(sampled), 1, generator=generator, device=generator.device)
        draw = share.to(cumulative.device) * cumulative[:, -1:]
        found = torch.searchsorted(cumulative, draw, right=True)[:, 0]
        chosen_B[sampled] = found.clamp_max(logits_BV.shape[-1] - 1)
    return chosen_B
