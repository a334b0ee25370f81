"""The training loop: one process, AdamW on float32 weights, resumable at its checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from eyas.checkpoint import whole_file
from eyas.data.states import StateStore
from eyas.errors import UsageError
from eyas.model.drafter import Drafter
from eyas.spec import Fused
from eyas.train.batches import Batch, Weighing, batch_plan, channel_rms, make_batch, split_held_out
from eyas.train.held_out import HeldOutScore, check_scorable, held_out_score
from eyas.train.loss import StepScores, step_weights, unrolled_loss
from eyas.train.settings import TrainSettings
from eyas.train.workers import Workers

RMS_EXAMPLES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the loop reports after an update."""

    update: int
    updates: int
    steps: tuple[StepScores, ...]
    tokens_per_second: float
    held_out: HeldOutScore | None


def train(
    drafter: Drafter,
    target_head_VH: Tensor,
    kept_ids_V: Tensor,
    store: StateStore,
    settings: TrainSettings,
    checkpoint: Path,
    report: Callable[[Progress], None],
    until: int | None = None,
) -> HeldOutScore:
    """Train `drafter` in place on `store`; returns the score on its held-out examples.

    With `until` the run stops after so many updates, to be measured; the next one goes on.

    `target_head_VH` is the target's whole head, and all runs on its device; `kept_ids_V` is the
    draft vocabulary. fc is trained
    on captured channels divided by their root mean squares, since AdamW's steps are alike for all
    and a few channels are a hundred times larger; fc is scaled to match before and back after
    (a drafter with norms before fc needs none of it). A run whose
    `checkpoint` exists goes on from it and ends with the same weights as one never stopped.
    Raises UsageError when the held-out answers are too few or short to score, when the checkpoint
    belongs to other settings, data or draft vocabulary, and
    when the drafter was made for another vocabulary than `kept_ids_V`, or for other boundaries than
    those of `store`.
    """
    training, held_out = split_held_out(len(store), settings.held_out_every)
    if not training or not held_out:
        raise UsageError(
            f"{len(store)} examples are too few to train on and hold out "
            f"one in {settings.held_out_every}"
        )
    check_scorable(store, held_out, settings.scoring)
    often = dict(enumerate(settings.repeats))
    read = [index for index in training for _ in range(often.get(store.directory(index), 1))]
    weighing = Weighing(
        max_length=settings.max_length,
        prompt_weight=settings.prompt_weight,
        prompt_reach=settings.prompt_reach,
    )
    plan = [
        batch
        for number in range(settings.passes)
        for batch in batch_plan(
            store,
            read,
            weighing,
            tokens=settings.batch_tokens,
            seed=f"{settings.seed}/{number}",
        )
    ]
    device = target_head_VH.device
    drafter.to(device)
    optimizer = _optimizer(drafter, settings)
    dtype = torch.bfloat16 if settings.bf16 else drafter.norm.weight.dtype
    teacher_head_VH = target_head_VH[kept_ids_V]
    scale_C = _captured_scale(drafter, store, training[:RMS_EXAMPLES]).to(device)
    _check_vocabulary(drafter, kept_ids_V)
    _check_boundaries(drafter, store)
    with torch.no_grad():
        drafter.fc.weight.div_(scale_C)
    told = {"settings": asdict(settings), "updates": len(plan), "data": store.digest()}
    first = _resume(checkpoint, drafter, optimizer, told)
    end = len(plan) if until is None else min(until, len(plan))
    workers = Workers(drafter, settings.workers)

    def backward(replica: Drafter, batch: Batch, weighed_K: Tensor) -> list[StepScores]:
        # The cache of cast weights is one for all threads and emptied by whichever ends first, so
        # that chance would decide which gradients are added up in bfloat16.
        with torch.autocast(
            device.type, dtype=torch.bfloat16, enabled=settings.bf16, cache_enabled=False
        ):
            loss, scores = unrolled_loss(
                replica,
                teacher_head_VH,
                batch,
                steps=settings.unroll_steps,
                step_decay=settings.step_decay,
                dtype=dtype,
                weighed_K=weighed_K,
            )
        torch.autograd.backward(loss)
        return scores

    for update in range(first, end):
        began = time.perf_counter()
        batches = [
            make_batch(store, part, scale_C, weighing, device=device)
            for part in workers.parts(plan[update])
        ]
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * _rate(update, len(plan), settings.warmup_steps)
        weighed_K = step_weights([batch.weight_BT for batch in batches], settings.unroll_steps)
        parts = workers.gradients(batches, partial(backward, weighed_K=weighed_K))
        scores = [StepScores.summed(step) for step in zip(*parts, strict=True)]
        nn.utils.clip_grad_norm_(drafter.parameters(), settings.gradient_clip)
        optimizer.step()
        held = None
        if (update + 1) % settings.checkpoint_every == 0:
            held = held_out_score(
                drafter, target_head_VH, store, held_out, scale_C, settings.scoring
            )
            _save(checkpoint, drafter, optimizer, told, update + 1)
        seconds = time.perf_counter() - began
        report(
            Progress(
                update=update + 1,
                updates=len(plan),
                steps=tuple(scores),
                tokens_per_second=sum(batch.ids_BT.numel() for batch in batches) / seconds,
                held_out=held,
            )
        )
    workers.close()
    if first < end and end % settings.checkpoint_every:  # else the last update has saved it
        _save(checkpoint, drafter, optimizer, told, end)
    score = held_out_score(drafter, target_head_VH, store, held_out, scale_C, settings.scoring)
    with torch.no_grad():
        drafter.fc.weight.mul_(scale_C)
    return score


def _captured_scale(drafter: Drafter, store: StateStore, indices: Sequence[int]) -> Tensor:
    if drafter.shape.fc_norm or drafter.shape.input_norm:
        return torch.ones(drafter.shape.captured_width)
    return 1.0 / channel_rms(store, indices)


def _optimizer(drafter: Drafter, settings: TrainSettings) -> torch.optim.AdamW:
    gains = [p for p in drafter.parameters() if p.ndim == 1]
    matrices = [p for p in drafter.parameters() if p.ndim > 1]
    return torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": settings.weight_decay},
            {"params": gains, "weight_decay": 0.0},
        ],
        lr=settings.learning_rate,
        betas=(0.9, 0.95),
        fused=True,
    )


def _rate(update: int, updates: int, warmup: int) -> float:
    """Linear warm-up, then a half cosine down to a hundredth."""
    if update < warmup:
        return (update + 1) / warmup
    done = (update - warmup) / max(updates - warmup, 1)
    return 0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * done))


def _check_vocabulary(drafter: Drafter, kept_ids_V: Tensor) -> None:
    draft_ids = torch.arange(drafter.shape.draft_vocab, device=drafter.norm.weight.device)
    meant = drafter.target_ids(draft_ids)
    if not torch.equal(meant.cpu(), kept_ids_V.cpu()):
        raise UsageError(
            f"the drafter was made for another draft vocabulary ({len(meant)} ids) than the one"
            f" given ({len(kept_ids_V)} ids)",
            hint="give the vocabulary file that the drafter was made with, or make a new drafter",
        )


def _check_boundaries(drafter: Drafter, store: StateStore) -> None:
    conditioning = drafter.spec.conditioning
    if not isinstance(conditioning, Fused):
        raise UsageError("a drafter without captured boundaries is not trained here")
    taken = conditioning.boundaries.value
    if taken != store.origin.boundaries:
        raise UsageError(
            f"the drafter takes the states at boundaries {taken},"
            f" but the training states are those of {store.origin}",
            hint="capture the states at the drafter's boundaries",
        )


def _save(
    file: Path,
    drafter: Drafter,
    optimizer: torch.optim.Optimizer,
    told: Mapping[str, Any],
    update: int,
) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    state = {
        **told,
        "update": update,
        "drafter": drafter.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    # given a path, torch would write the path's name into the file
    with whole_file(file) as unfinished, unfinished.open("wb") as out:
        torch.save(state, out)


def _resume(
    file: Path,
    drafter: Drafter,
    optimizer: torch.optim.Optimizer,
    told: Mapping[str, Any],
) -> int:
    """The next update; `told` is what the checkpoint must have been told as well."""
    if not file.exists():
        return 0
    state = torch.load(file, weights_only=True, map_location="cpu")
    if any(state.get(name) != held for name, held in told.items()):
        raise UsageError(
            f"`{file}` is a checkpoint of a run with other settings or data",
            hint="give another checkpoint file, or remove this one",
        )
    map_V = drafter.state_dict().get("d2t")
    if map_V is not None and not torch.equal(state["drafter"]["d2t"], map_V.cpu()):
        raise UsageError(
            f"`{file}` is a checkpoint of a run with another draft vocabulary",
            hint="give the vocabulary file of that run, or another checkpoint file",
        )
    drafter.load_state_dict(state["drafter"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["update"])
