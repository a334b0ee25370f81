"""A process that trains a drafter on command and says what each command cost in CPU seconds.

It needs torch and safetensors alone, so that a trainer in an environment of its own can use it.
A command is one line of JSON: {"rows": length of a row, "size": rows a batch, "first": number of
the first batch, "updates": how many, "freeze": whether the head is left as it is}, or
{"save": file}; the answer is one line of JSON. Rows are drawn in order and over again.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

STEPS, STEP_DECAY = 3, 0.9
LEARNING_RATE, WARMUP, WEIGHT_DECAY, CLIP = 1e-3, 40, 0.01, 1.0
# Rows are packed one behind another by some: a position counts where every step's chain has begun
# in its own row. The last counts nowhere, for no text says what follows it.
FIRST_COUNTED = STEPS

Batch = dict[str, Tensor]


def rows_file(folder: Path, length: int) -> Path:
    """Rows of one length: ids [N, T], captured [N, T, C], last and final [N, T, H].

    `last` is the target's state before its final norm, `final` the one after it.
    """
    return folder / f"rows-{length}.safetensors"


def batch_of(rows: Batch, first: int, size: int) -> Batch:
    """`size` rows from row `first` on, and from the first again after the last."""
    count = len(rows["ids"])
    chosen = torch.arange(first, first + size) % count
    return {name: held[chosen] for name, held in rows.items()}


def counted_of(ids_BT: Tensor) -> Tensor:
    """Whether position j's prediction of the token after it counts, [B, T]."""
    counted_BT = torch.zeros(ids_BT.shape, dtype=torch.bool)
    counted_BT[:, FIRST_COUNTED:-1] = True
    return counted_BT


def obey(
    folder: Path, drafter: nn.Module, head: Tensor, loss_of: Callable[[Batch], Tensor]
) -> None:
    """Carry out the commands of standard input with AdamW on the float32 `drafter`."""
    torch.set_num_threads(1)
    drafter.train()
    trained = [p for p in drafter.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in trained if p.ndim > 1], "weight_decay": WEIGHT_DECAY},
            {"params": [p for p in trained if p.ndim == 1], "weight_decay": 0.0},
        ],
        betas=(0.9, 0.95),
        fused=True,
    )
    rows: dict[int, Batch] = {}
    updates = 0
    print(json.dumps({"trained": sum(p.numel() for p in trained)}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "save" in order:
            # a copy each, for some share memory
            state = {name: held.clone() for name, held in drafter.state_dict().items()}
            save_file(state, order["save"])
            print("{}", flush=True)
            continue
        length, size = order["rows"], order["size"]
        if length not in rows:
            rows[length] = load_file(rows_file(folder, length))
        numbers = range(order["first"], order["first"] + order["updates"])
        batches = [batch_of(rows[length], number * size, size) for number in numbers]
        head.requires_grad_(not order["freeze"])
        losses = []
        began = time.process_time()
        for batch in batches:
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * min(1.0, (updates + 1) / WARMUP)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = loss_of(batch)
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(trained, CLIP)
            optimizer.step()
            losses.append(float(loss.detach()))
            updates += 1
        print(json.dumps({"seconds": time.process_time() - began, "losses": losses}), flush=True)
