"""What a training run is told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """A run of test-time training; lengths and batch sizes count tokens.

    `batch_tokens` are the positions that count, padding included; for `max_length`,
    `prompt_weight` and `prompt_reach` see `eyas.train.batches.Weighing`. A pass reads the examples
    of each directory of states `repeats` times: once where nothing is said of it. An update is
    shared out between `workers` threads.
    """

    passes: int
    repeats: tuple[int, ...]
    batch_tokens: int
    max_length: int
    unroll_steps: int
    step_decay: float
    learning_rate: float
    warmup_steps: int
    weight_decay: float
    gradient_clip: float
    prompt_weight: float
    prompt_reach: int
    seed: int
    bf16: bool
    workers: int
    held_out_every: int
    checkpoint_every: int
