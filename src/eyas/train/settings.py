"""What a training run is told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """How a drafter is scored on states: in chains of `unroll_steps` drafts.

    Of an example the first `max_length` tokens are read, and a batch holds `batch_tokens` positions
    that count, padding included. With `bf16` products are taken in bfloat16; without it everything
    is computed in the drafter's own type, whatever the states are stored in.
    """

    unroll_steps: int
    max_length: int
    batch_tokens: int
    bf16: bool


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

    @property
    def scoring(self) -> Scoring:
        """How its held-out examples are scored."""
        return Scoring(
            unroll_steps=self.unroll_steps,
            max_length=self.max_length,
            batch_tokens=self.batch_tokens,
            bf16=self.bf16,
        )
