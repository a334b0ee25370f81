"""The target's own greedy answers to a few prompts, made once a target and kept in eyas's cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import torch

from eyas.checkpoint import whole_file
from eyas.checkpoint.cache import cache_dir
from eyas.data.answers import chat_ids
from eyas.data.prompts import OWN_PROMPTS, Prompt
from eyas.data.questions import read_any_prompts
from eyas.decode.greedy import plain_rounds
from eyas.decode.prefill import read_prompt
from eyas.errors import UsageError
from eyas.model.llama import LlamaTarget
from eyas.model.load import load_tokenizer
from eyas.model.target import Target

ANSWER = 64  # tokens of an answer at most
BEYOND = 8  # greedy tokens after an answer's end, which the last rounds draft into
LONGEST_PROMPT = 1024  # tokens: a longer prompt is left out
_FORMAT = 1
_TAIL = 2**16  # bytes at the end of each weight file that tell a fine-tune from its base


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A prompt and the target's greedy answer: `prompt` and `answer` count their tokens.

    `ids` go on for `BEYOND` tokens after the answer's end, whatever the target says there.
    """

    id: str
    category: str
    ids: tuple[int, ...]
    prompt: int
    answer: int

    @property
    def starts(self) -> range:
        """The slots at which a round may start: that of the last token the target has read."""
        return range(self.prompt - 1, self.prompt + self.answer - 2)


def texts_of(target: Target, prompts: Path | None, say: Callable[[str], None]) -> tuple[Text, ...]:
    """The texts of `prompts`, or of eyas's own, from the cache where they were made before.

    Raises UsageError for a file without a prompt that the target answers in two tokens or more.
    """
    asked = read_any_prompts(OWN_PROMPTS if prompts is None else prompts)
    file = cache_dir() / "diagnose" / f"answers-{_digest(target, asked)}.json"
    texts = _read(file) if file.is_file() else None
    if texts is None:
        say(f"{target.facts.name} answers {len(asked)} prompts, once")
        texts = _answered(target, asked)
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(file) as unfinished:
            unfinished.write_text(json.dumps([asdict(text) for text in texts]), encoding="utf-8")
    usable = tuple(text for text in texts if text.starts)
    if not usable:
        raise UsageError(
            f"none of the {len(asked)} prompts has an answer of two tokens or more",
            hint="give other prompts with --prompts",
        )
    return usable


def _read(file: Path) -> tuple[Text, ...] | None:
    """The texts in `file`; None where it is not one of ours, so that they are made again."""
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
        return tuple(Text(**{**record, "ids": tuple(record["ids"])}) for record in held)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _digest(target: Target, prompts: Sequence[Prompt]) -> str:
    """What answers hang on: the target's files, as far as they are cheap to read, and prompts."""
    digest = hashlib.sha256(f"{_FORMAT} {ANSWER} {BEYOND} {target.facts.dtype}".encode())
    directory = target.facts.directory
    for name in sorted(p.name for p in directory.glob("*.safetensors")):
        with (directory / name).open("rb") as file:
            header = file.read(8)
            digest.update(header + file.read(min(int.from_bytes(header, "little"), 2**26)))
            size = file.seek(0, 2)
            file.seek(max(size - _TAIL, 0))
            digest.update(file.read())
    for name in ("config.json", "chat_template.jinja", "tokenizer_config.json"):
        if (directory / name).is_file():
            digest.update((directory / name).read_bytes())
    digest.update(json.dumps([asdict(prompt) for prompt in prompts]).encode())
    return digest.hexdigest()[:24]


def _answered(target: Target, prompts: Sequence[Prompt]) -> tuple[Text, ...]:
    tokenizer = load_tokenizer(target.facts.directory)
    ids = [chat_ids(tokenizer, prompt) for prompt in prompts]
    kept = [(p, i) for p, i in zip(prompts, ids, strict=True) if 0 < len(i) <= LONGEST_PROMPT]
    rows = [ids for _, ids in kept]
    new = ANSWER + BEYOND
    if isinstance(target, LlamaTarget):
        answers = _together(target, rows, new)
    else:
        answers = [_alone(target, row, new) for row in rows]
    ends = frozenset(target.facts.eos_ids)
    return tuple(
        _text(prompt, ids, answer, ends)
        for (prompt, ids), answer in zip(kept, answers, strict=True)
    )


def _text(prompt: Prompt, ids: list[int], answer: list[int], ends: frozenset[int]) -> Text:
    end = next((i + 1 for i, token in enumerate(answer[:ANSWER]) if token in ends), ANSWER)
    return Text(
        id=prompt.id,
        category=prompt.category,
        ids=(*ids, *answer[: end + BEYOND]),
        prompt=len(ids),
        answer=end,
    )


def _alone(target: Target, row: list[int], new: int) -> list[int]:
    return [step.tokens[0] for step in islice(plain_rounds(target, row, max_new=new), new)]


@torch.inference_mode()
def _together(target: LlamaTarget, rows: list[list[int]], new: int) -> list[list[int]]:
    """The greedy continuations of all rows at once, padded on the left."""
    if not rows:
        return []
    longest = max(map(len, rows))
    starts_B = torch.tensor([longest - len(row) for row in rows], device=target.device)
    padded = [[0] * (longest - len(row)) + row for row in rows]
    cache = target.new_cache(len(rows), longest + new, starts_B)
    final_BTH = read_prompt(target, torch.tensor(padded, device=target.device), cache).final_BTH
    chosen = []
    for _ in range(new):
        chosen_B = target.logits(final_BTH[:, -1:]).argmax(dim=-1)
        chosen.append(chosen_B)
        final_BTH = target.forward(chosen_B, cache).final_BTH
    answers: list[list[int]] = torch.cat(chosen, dim=1).tolist()
    return answers
