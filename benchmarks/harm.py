"""What a planted fault costs: the tau of a drafter as served, over every position of some answers.

A measure of its own, beside the one of eyas's diagnosis: the score run takes a fault that can be
seen in acceptance alone for one only where it costs some.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from eyas.checkpoint import open_checkpoint, open_target
from eyas.data.answers import chat_ids
from eyas.data.questions import read_any_prompts
from eyas.decode.conditioning import boundaries_read
from eyas.decode.greedy import generate
from eyas.decode.prefill import read_prompt
from eyas.engines import EngineRef, Launch, read
from eyas.errors import EyasError
from eyas.model.drafter import Drafter
from eyas.model.load import load_target, load_tokenizer
from eyas.model.served import Fill, served_drafter
from eyas.model.target import Target
from eyas.spec import LastState, NotChecked
from eyas.train.unroll import unroll

STEPS = 3
ANSWER = 48
PROMPTS = 16
LEAST = 0.03  # of tau: what costs less is no fault


@dataclass(frozen=True, slots=True)
class _Text:
    ids_1T: Tensor
    prompt: int
    states_TBH: Tensor  # at every boundary
    last_TH: Tensor  # after the final norm


class Harm:
    """The texts of one target, read once, and the tau of drafters over them."""

    def __init__(self, target: Path, prompts: Path) -> None:
        self._target: Target = load_target(target)
        self._facts = open_target(target)
        tokenizer = load_tokenizer(target)
        asked = read_any_prompts(prompts)[-PROMPTS:]
        self._texts = [self._text(chat_ids(tokenizer, prompt)) for prompt in asked]

    @torch.inference_mode()
    def _text(self, prompt: Sequence[int]) -> _Text:
        answer = generate(self._target, prompt, max_new=ANSWER, drafter=None, steps=0).tokens
        ids_1T = torch.tensor([[*prompt, *answer]])
        length, layers = ids_1T.shape[1], self._target.facts.num_layers
        cache = self._target.new_cache(1, length)
        reading = read_prompt(self._target, ids_1T, cache, tuple(range(layers + 1)))
        assert reading.captured_BTC is not None
        states = reading.captured_BTC.view(length, layers + 1, -1).clone()
        return _Text(ids_1T, len(prompt), states, self._target.normed(reading.final_BTH)[0])

    def tau(self, path: Path, ref: str, launch: Sequence[str]) -> float:
        """1 + accepted drafts a position as the engine serves it; 0 where it does not start."""
        checkpoint = open_checkpoint(path)
        served = read(
            EngineRef.parse(ref), checkpoint, target=self._facts, launch=Launch.parse(launch)
        )
        if isinstance(served, NotChecked) or served.refusal is not None:
            return 0.0
        try:
            drafter = served_drafter(served, checkpoint, self._target, fill=Fill.NORMAL)
        except EyasError:
            return 0.0
        counts = [self._accepted(drafter, text) for text in self._texts]
        return 1 + float(torch.cat(counts).float().mean())

    @torch.inference_mode()
    def _accepted(self, drafter: Drafter, text: _Text) -> Tensor:
        conditioning = drafter.spec.conditioning
        if isinstance(conditioning, LastState):
            states_TC = text.last_TH
        else:
            chosen = list(boundaries_read(drafter, self._target))
            states_TC = text.states_TBH[:, chosen].flatten(1)
        first, ids_T = text.prompt - 1, text.ids_1T[0]
        starts = len(ids_T) - first - 1 - STEPS  # rounds whose drafts all lie within the answer
        right = []
        for step, out in enumerate(unroll(drafter, text.ids_1T, states_TC[None], STEPS, first)):
            drafts = drafter.target_ids(drafter.logits(out[0, :starts]).argmax(-1))
            right.append(drafts == ids_T[first + 2 + step :][:starts])
        return torch.stack(right, -1).long().cumprod(-1).sum(-1)


def costs(harm: Harm, sound: tuple[Path, str], planted: tuple[Path, str, Sequence[str]]) -> float:
    """The tau that the planted fault takes away; `sound` is the drafter before it."""
    return harm.tau(*sound, ()) - harm.tau(*planted)


def noted(cost: float) -> str:
    """The cost as JSON has it."""
    return json.dumps(round(cost, 4))
