"""The stages of training on a tiny target, for processes that are killed in the midst of them."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal, cast

import torch
from tests.decode.oracle import VOCAB, tiny_target

import eyas
from eyas.data.answer_settings import AnswerSettings
from eyas.data.answers import answer_prompts
from eyas.data.prompts import one_turn
from eyas.data.states import StateStore, capture_directory
from eyas.spec import DefaultBoundaries, boundaries_of
from eyas.train.batches import channel_rms
from eyas.train.fresh import fresh_drafter
from eyas.train.loop import Progress, train
from eyas.train.settings import TrainSettings
from eyas.train.vocabulary import draft_vocabulary

SOURCE = str(Path(eyas.__file__).parent)
LAYERS, EOS, DRAFT_VOCAB = 8, (5,), 40
ANSWERS = AnswerSettings(
    batch_size=4, max_prompt_tokens=40, max_new_tokens=16, temperatures=(0.0, 1.0), seed=0
)
PROMPTS = [
    one_turn(str(number), "question", "why is it so? "[: 4 + number % 10]) for number in range(12)
]
TRAINING = TrainSettings(
    passes=3,
    repeats=(),
    batch_tokens=96,
    max_length=40,
    unroll_steps=3,
    step_decay=0.9,
    learning_rate=5e-3,
    warmup_steps=2,
    weight_decay=0.01,
    gradient_clip=1.0,
    prompt_weight=0.2,
    prompt_reach=4,
    seed=0,
    bf16=True,
    workers=2,
    held_out_every=6,
    checkpoint_every=3,
)


class Letters:
    """A tokenizer that knows letters."""

    def apply_chat_template(self, chat: list[dict[str, str]], **_: Any) -> list[int]:
        return [ord(letter) % VOCAB for turn in chat for letter in turn["content"]]


def answers(_: Path, out: Path) -> None:
    """Answers of the tiny target, in three shards."""
    target = tiny_target(eos_ids=EOS, layers=LAYERS)
    answer_prompts(target, cast(Any, Letters()), PROMPTS, out, ANSWERS, lambda _, __: None)


def states(source: Path, out: Path) -> None:
    """The states of answers."""
    target = tiny_target(eos_ids=EOS, layers=LAYERS)
    boundaries = boundaries_of(DefaultBoundaries(), LAYERS)
    capture_directory(target, boundaries, source, out, lambda _, __: None)


def training(source: Path, out: Path) -> None:
    """A drafter trained on states; the last checkpoint holds its weights.

    Every checkpoint that a report finds is kept in a folder beside `out`.
    """
    target = tiny_target(eos_ids=EOS, layers=LAYERS)
    vocabulary = draft_vocabulary({}, size=DRAFT_VOCAB, vocab_size=VOCAB, always=EOS)
    store = StateStore([source])
    rms_C = channel_rms(store, range(len(store)))
    drafter = fresh_drafter(target, vocabulary, captured_rms_C=rms_C, seed=0)
    file, kept = out / "run.pt", out.with_name(f"{out.name}.checkpoints")

    def keep(progress: Progress) -> None:
        if progress.held_out is not None:
            kept.mkdir(exist_ok=True)
            shutil.copy(file, kept / f"{progress.update}.pt")

    train(drafter, target.head_VH, vocabulary.ids_V, store, TRAINING, file, keep)


STAGES: dict[str, Callable[[Path, Path], None]] = {
    "answers": answers,
    "states": states,
    "training": training,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a process dies: at call `number` of eyas's own functions, right before or after it
    gives a file its name for the `number`th time, or on writing byte `number` of a file.
    """

    kind: Literal["call", "before a rename", "after a rename", "byte"]
    number: int


def run(stage: str, source: Path, out: Path, moment: Moment | None, calls: Path | None) -> None:
    """A stage, until `moment`; writes into `calls` how many calls of eyas's functions it took."""
    torch.set_num_threads(1)
    counter = Counter(moment)
    if moment is not None and moment.kind == "byte":
        # The kernel ends the process within the write: as final as SIGKILL, and to the byte.
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (moment.number, moment.number))
    sys.addaudithook(counter.audit)
    sys.setprofile(counter.profile)
    STAGES[stage](source, out)
    sys.setprofile(None)
    if calls is not None:
        calls.write_text(str(counter.calls))


class Counter:
    """Counts calls and renames, and ends the process when the moment has come."""

    def __init__(self, moment: Moment | None) -> None:
        self.moment = moment
        self.calls = self.renames = 0

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            self.die_at("after a rename", self.renames)
            self.calls += 1
            self.die_at("call", self.calls)

    def audit(self, event: str, _: Any) -> None:
        if event == "os.rename":
            self.renames += 1
            self.die_at("before a rename", self.renames)

    def die_at(self, kind: str, number: int) -> None:
        moment = self.moment
        if moment is not None and (moment.kind, moment.number) == (kind, number):
            os.kill(os.getpid(), signal.SIGKILL)
