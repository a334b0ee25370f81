"""Train the SmolLM2 drafter of assets/, one stage at a time; every stage resumes what it finds.

    python benchmarks/train_smollm2.py answers PROMPTS.jsonl ANSWERS_DIR
    python benchmarks/train_smollm2.py states ANSWERS_DIR STATES_DIR --unlike PROMPTS…
    python benchmarks/train_smollm2.py vocabulary VOCABULARY.json ANSWERS_DIR…
    python benchmarks/train_smollm2.py train VOCABULARY.json CHECKPOINT.pt OUT_DIR STATES_DIR…

PROMPTS.jsonl is written by benchmarks/training_prompts.py.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from eyas.checkpoint import open_checkpoint
from eyas.data.answer_settings import AnswerSettings
from eyas.data.answers import answer_prompts
from eyas.data.conversation import Conversation, read_conversations
from eyas.data.prompts import read_prompts
from eyas.data.questions import read_any_prompts
from eyas.data.states import StateStore, capture_directory
from eyas.data.windows import Windows
from eyas.model.llama import LlamaTarget
from eyas.model.load import load_target, load_tokenizer
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.spec import DefaultBoundaries, boundaries_of
from eyas.train.batches import channel_rms
from eyas.train.export import export_drafter
from eyas.train.fresh import fresh_drafter
from eyas.train.inherit import inherit
from eyas.train.loop import Progress, train
from eyas.train.settings import TrainSettings
from eyas.train.vocabulary import (
    DraftVocabulary,
    count_tokens,
    draft_vocabulary,
    read_vocabulary,
    write_vocabulary,
)

DRAFT_VOCABULARY = 8192
# A prompt's token counts for this share of an answer's, in the vocabulary and in the loss.
PROMPT_SHARE = 0.2
# Of a long prompt only the end counts in the loss, for what an answer needs are its keys.
PROMPT_REACH = 64


def main() -> None:
    """Run one stage."""
    options = _options()
    torch.set_num_threads(options.threads)
    target = load_target(options.target, dtype=torch.bfloat16, device=options.device)
    began = time.time()
    STAGES[options.stage](options, target)
    print(f"{options.stage} took {time.time() - began:.0f} s")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="smollm2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    stages = parser.add_subparsers(dest="stage", required=True)
    answers = stages.add_parser("answers")
    answers.add_argument("prompts", type=Path)
    answers.add_argument("answers", type=Path)
    answers.add_argument("--seed", type=int, default=1)
    answers.add_argument("--max-new-tokens", type=int, default=224)
    answers.add_argument("--max-prompt-tokens", type=int, default=300)
    answers.add_argument("--batch-size", type=int, default=128)
    states = stages.add_parser("states")
    states.add_argument("answers", type=Path)
    states.add_argument("states", type=Path)
    states.add_argument(
        "--unlike",
        type=Path,
        nargs="+",
        required=True,
        help="prompts to be measured on: what shares 13 tokens with one is not trained on",
    )
    vocabulary = stages.add_parser("vocabulary")
    vocabulary.add_argument("vocabulary", type=Path)
    vocabulary.add_argument("answers", type=Path, nargs="+")
    training = stages.add_parser("train")
    training.add_argument("vocabulary", type=Path)
    training.add_argument("checkpoint", type=Path)
    training.add_argument("out", type=Path)
    training.add_argument("states", type=Path, nargs="+")
    training.add_argument("--workers", type=int, default=2, help="threads that share an update")
    training.add_argument("--passes", type=int, default=4)
    training.add_argument(
        "--repeats", type=int, nargs="*", default=[], help="how often a pass reads each STATES_DIR"
    )
    training.add_argument("--learning-rate", type=float, default=1e-3)
    training.add_argument("--batch-tokens", type=int, default=2048)
    training.add_argument("--until", type=int, help="stop after so many updates, to look at it")
    training.add_argument("--start-from", type=Path, help="a drafter that eyas exported")
    training.add_argument("--target-name", help="the target's name in the drafter's config")
    training.add_argument("--card", type=Path, help="becomes README.md")
    return parser.parse_args()


def _answers(options: argparse.Namespace, target: Target) -> None:
    settings = AnswerSettings(
        batch_size=options.batch_size,
        max_prompt_tokens=options.max_prompt_tokens,
        max_new_tokens=options.max_new_tokens,
        temperatures=(0.0, 0.7, 1.0),
        seed=options.seed,
    )

    def progress(file: Path, answered: Sequence[Conversation]) -> None:
        print(file.name, sum(len(c.answer_ids) for c in answered), "tokens", flush=True)

    if not isinstance(target, LlamaTarget):
        raise SystemExit("answers are generated in batches for Llama-family targets alone")
    tokenizer = load_tokenizer(options.target)
    prompts = read_prompts(options.prompts)
    answer_prompts(target, tokenizer, prompts, options.answers, settings, progress)


def _states(options: argparse.Namespace, target: Target) -> None:
    boundaries = boundaries_of(DefaultBoundaries(), target.facts.num_layers)

    measured = [prompt for file in options.unlike for prompt in read_any_prompts(file)]
    windows = Windows(load_tokenizer(options.target), measured)
    left_out: list[Conversation] = []

    def progress(file: Path, tokens: int) -> None:
        print(file.name, tokens, "tokens", len(left_out), "left out so far", flush=True)

    def measured_on(conversation: Conversation) -> bool:
        touched = windows.touch(conversation.ids)
        left_out.extend([conversation] if touched else [])
        return touched

    capture_directory(target, boundaries, options.answers, options.states, progress, measured_on)


def _vocabulary(options: argparse.Namespace, target: Target) -> None:
    conversations = [c for directory in options.answers for c in read_conversations(directory)]
    seen, unseen = conversations[::2], conversations[1::2]
    sizes = (4096, DRAFT_VOCABULARY, 16384)
    counts = count_tokens(seen, PROMPT_SHARE)
    for size in sizes:
        kept = set(_kept(counts, size, target).ids)
        written = [token for c in unseen for token in c.answer_ids]
        covered = sum(token in kept for token in written) / len(written)
        print(f"{size}: {covered:.2%} of the other half's answers")
    vocabulary = _kept(count_tokens(conversations, PROMPT_SHARE), DRAFT_VOCABULARY, target)
    print(f"kept {len(vocabulary.ids)}: {vocabulary.coverage:.2%} of what they were chosen by")
    write_vocabulary(options.vocabulary, vocabulary)


def _kept(counts: dict, size: int, target: Target) -> DraftVocabulary:
    return draft_vocabulary(
        counts, size=size, vocab_size=target.facts.vocab_size, always=target.facts.eos_ids
    )


def _train(options: argparse.Namespace, target: Target) -> None:
    vocabulary = read_vocabulary(options.vocabulary, target.facts.vocab_size)
    store = StateStore(options.states)
    rms_C = channel_rms(store, range(min(256, len(store))))
    drafter = fresh_drafter(target, vocabulary, captured_rms_C=rms_C, seed=0)
    if options.start_from is not None:
        older = trained_drafter(open_checkpoint(options.start_from), target).float()
        rows = inherit(drafter, older, target.head_VH)
        print(f"goes on from {options.start_from}, with {rows} rows of its head")
    settings = TrainSettings(
        passes=options.passes,
        repeats=tuple(options.repeats),
        batch_tokens=options.batch_tokens,
        max_length=1536,
        unroll_steps=3,
        step_decay=0.7,
        learning_rate=options.learning_rate,
        warmup_steps=40,
        weight_decay=0.01,
        gradient_clip=1.0,
        prompt_weight=PROMPT_SHARE,
        prompt_reach=PROMPT_REACH,
        seed=0,
        bf16=True,
        workers=options.workers,
        held_out_every=40,
        checkpoint_every=500,
    )

    def report(progress: Progress) -> None:
        if progress.held_out is not None:
            print(progress.held_out, f"expected tau {progress.held_out.expected_tau:.3f}")
        if progress.update % 10 == 0:
            steps = "  ".join(f"{s.loss:.2f} {s.accuracy:.3f}" for s in progress.steps)
            speed = f"{progress.tokens_per_second:.0f} tokens/s"
            print(f"{progress.update}/{progress.updates}  {steps}  {speed}", flush=True)

    head, kept_ids = target.head_VH, vocabulary.ids_V
    score = train(
        drafter, head, kept_ids, store, settings, options.checkpoint, report, options.until
    )
    print(score, f"expected tau {score.expected_tau:.3f}")
    export_drafter(
        drafter,
        vocabulary,
        options.out,
        target_name=options.target_name or target.facts.name,
        target_architecture=target.facts.architecture,
        speculative_tokens=settings.unroll_steps,
        extra_files={"README.md": options.card.read_text()} if options.card else {},
    )


STAGES = {"answers": _answers, "states": _states, "vocabulary": _vocabulary, "train": _train}


if __name__ == "__main__":
    main()
