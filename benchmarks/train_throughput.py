"""Training throughput beside speculators 0.9.0's own model class, and whether both learn alike.

    python benchmarks/train_throughput.py ANSWERS_DIR FOLDER --speculators SPEC/bin/python

ANSWERS_DIR holds SmolLM2's answers (benchmarks/train_smollm2.py answers); FOLDER is made, or used
again. SPEC is an environment as tests/model/make_speculators_fixtures.py describes it. Both train
the same 8,192-token drafter from the same weights on the same states in the same order, in
bfloat16 autocast over float32 weights, with the same AdamW; one thread each, in turns, measured
in CPU seconds of their own process. First 100 updates, whose losses are compared; then large
batches, for speed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from timed_updates import STEP_DECAY, STEPS, batch_of, counted_of, rows_file
from torch import Tensor

from eyas.checkpoint import open_checkpoint
from eyas.data.conversation import Conversation, read_conversations
from eyas.data.states import capture
from eyas.model.drafter import Drafter
from eyas.model.load import load_target
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.spec import DefaultBoundaries, boundaries_of
from eyas.train.batches import Batch
from eyas.train.export import export_drafter
from eyas.train.fresh import fresh_drafter
from eyas.train.loss import unrolled_loss
from eyas.train.vocabulary import count_tokens, draft_vocabulary

DRAFT_VOCABULARY, PROMPT_SHARE = 8192, 0.2
LENGTHS = (256, 512)
SHAPES = ((8, 256), (4, 512))
LOSS_SIZE, LOSS_LENGTH, LOSS_BLOCK = 1, 256, 10


def main() -> None:
    """Make what both read, run both, print what they did."""
    options = _options()
    torch.set_num_threads(1)
    target = load_target("smollm2", dtype=torch.bfloat16)
    if not rows_file(options.folder, LENGTHS[-1]).exists():
        prepare(options.answers, options.folder, target, options.conversations)
    here = Path(__file__).parent
    ours = Trainer([sys.executable, here / "eyas_updates.py", options.folder])
    theirs = Trainer(
        [
            options.speculators,
            here / "speculators_updates.py",
            options.folder,
            options.attention,
            options.layout,
        ]
    )
    if ours.trained != theirs.trained:
        raise SystemExit(f"eyas trains {ours.trained} weights, speculators {theirs.trained}")
    print(f"{ours.trained / 1e6:.1f} million weights, trained by both")
    if options.updates:
        compare_losses(ours, theirs, options.folder, target, options.updates)
    for size, length in SHAPES:
        compare_speed(ours, theirs, size, length, options.repeats)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("answers", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--speculators", type=Path, required=True, help="its python")
    parser.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    parser.add_argument("--layout", choices=["packed", "apart"], default="apart")
    parser.add_argument("--conversations", type=int, default=24)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


class Trainer:
    """One of the two processes."""

    def __init__(self, command: Sequence[object]) -> None:
        self._process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.trained: int = self._answer()["trained"]

    def update(
        self, size: int, length: int, first: int, updates: int, *, freeze: bool = False
    ) -> Any:
        """Train; `seconds` and `losses`."""
        return self._ask(rows=length, size=size, first=first, updates=updates, freeze=freeze)

    def save(self, file: Path) -> dict[str, Tensor]:
        """The weights as they are now."""
        self._ask(save=str(file))
        return load_file(file)

    def _ask(self, **order: object) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args} ended with status {self._process.wait()}")
        return json.loads(line)


def prepare(answers: Path, folder: Path, target: Target, count: int) -> None:
    """The states of conversations joined and cut into rows, a new drafter, what the target lends.

    Short rows are the halves of long ones. Captured channels are divided by their root mean
    squares, as the trainer's are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    boundaries = boundaries_of(DefaultBoundaries(), target.facts.num_layers)
    text = [token for c in islice(read_conversations(answers), count) for token in c.ids]
    longest = LENGTHS[-1]
    joined = [
        Conversation(
            id=str(begin),
            category="joined",
            ids=tuple(text[begin : begin + longest]),
            prompt_length=1,
            temperature=0.0,
        )
        for begin in range(0, len(text) - longest + 1, longest)
    ]
    states = capture(target, (*boundaries, target.facts.num_layers), joined)
    width = target.facts.hidden_size
    captured, last = states["captured"].split([len(boundaries) * width, width], dim=-1)
    # first positions are left out, as the trainer leaves them out
    rms_C = captured.unflatten(0, (-1, longest))[:, 1:].float().square().mean((0, 1)).sqrt()
    held = {
        "ids": states["ids"],
        "captured": captured / rms_C.to(captured.dtype),
        "last": last,
        "final": states["final"],
    }
    counts = count_tokens(read_conversations(answers), PROMPT_SHARE)
    vocabulary = draft_vocabulary(
        counts,
        size=DRAFT_VOCABULARY,
        vocab_size=target.facts.vocab_size,
        always=target.facts.eos_ids,
    )
    export_drafter(
        fresh_drafter(target, vocabulary, captured_rms_C=torch.ones_like(rms_C), seed=0),
        vocabulary,
        folder / "drafter",
        target_name=target.facts.name,
        target_architecture=target.facts.architecture,
        speculative_tokens=STEPS,
        extra_files={},
    )
    lent = {
        "embed_tokens.weight": target.embedding_VH,
        "verifier_lm_head.weight": target.head_VH[vocabulary.ids_V],
        "verifier_norm.weight": target.final_norm_H,
    }
    save_file(
        {name: weight.clone() for name, weight in lent.items()}, folder / "target.safetensors"
    )
    for length in LENGTHS:
        rows = {name: part.unflatten(0, (-1, length)).contiguous() for name, part in held.items()}
        save_file(rows, rows_file(folder, length))
    print(f"{len(joined)} rows of {longest} tokens, at boundaries {boundaries}")


def compare_losses(
    ours: Trainer, theirs: Trainer, folder: Path, target: Target, updates: int
) -> None:
    """Both over `updates` updates: their losses on the way, and those of their weights at the end.

    eyas reports the cross-entropy with the target, speculators the KL divergence: their
    difference is the target's entropy, which is subtracted from eyas's.
    """
    drafter = trained_drafter(open_checkpoint(folder / "drafter"), target).float()
    head_VH = target.head_VH[drafter.target_ids(torch.arange(drafter.shape.draft_vocab))].float()
    rows = load_file(rows_file(folder, LOSS_LENGTH))
    entropies = [
        entropy(batch_of(rows, number * LOSS_SIZE, LOSS_SIZE), head_VH) for number in range(updates)
    ]
    seconds = {"eyas": 0.0, "speculators": 0.0}
    losses: dict[str, list[float]] = {"eyas": [], "speculators": []}
    for first in range(0, updates, LOSS_BLOCK):
        for name, trainer in (("eyas", ours), ("speculators", theirs)):
            many = min(LOSS_BLOCK, updates - first)
            done = trainer.update(LOSS_SIZE, LOSS_LENGTH, first, many)
            seconds[name] += done["seconds"]
            print(f"{name}: {done['seconds']:.1f} CPU seconds to update {first + many}", flush=True)
            losses[name] += done["losses"]
    divergence = [loss - entropy for loss, entropy in zip(losses["eyas"], entropies, strict=True)]
    curves = {"eyas": divergence, "speculators": losses["speculators"]}
    weights = {
        name: trainer.save(folder / f"{name}.safetensors")
        for name, trainer in (("eyas", ours), ("speculators", theirs))
    }
    final = {
        name: loss_of_weights(drafter, state, rows, head_VH) for name, state in weights.items()
    }
    print(
        f"KL divergence, Σ {STEP_DECAY}^k over {STEPS} steps, {updates} updates of "
        f"{LOSS_SIZE} x {LOSS_LENGTH}:"
    )
    for name, curve in curves.items():
        tail = curve[-LOSS_BLOCK:]
        speed = updates * LOSS_SIZE * LOSS_LENGTH / seconds[name]
        print(
            f"  {name}: first {curve[0]:.4f}, mean {statistics.mean(curve):.4f},"
            f" mean of the last {len(tail)} {statistics.mean(tail):.4f};"
            f" of the final weights over all rows, in float32: {final[name]:.4f};"
            f" {speed:.0f} positions a CPU second"
        )
    for what, (a, b) in {
        "mean over updates": [statistics.mean(curve) for curve in curves.values()],
        "of the last": [statistics.mean(curve[-LOSS_BLOCK:]) for curve in curves.values()],
        "final weights": list(final.values()),
    }.items():
        print(f"  {what}: eyas {100 * (a / b - 1):+.2f} %")
    furthest = max(abs(a / b - 1) for a, b in zip(*curves.values(), strict=True))
    print(f"  furthest apart at one update: {100 * furthest:.2f} %", flush=True)


def entropy(rows: dict[str, Tensor], head_VH: Tensor) -> float:
    """Σ over steps of the target's mean entropy over the draft vocabulary, weighed as the loss."""
    logits = rows["final"][counted_of(rows["ids"])].float() @ head_VH.T
    mean = torch.distributions.Categorical(logits=logits).entropy().mean()
    return float(mean) * sum(STEP_DECAY**step for step in range(STEPS))


@torch.no_grad()
def loss_of_weights(
    drafter: Drafter, state: dict[str, Tensor], rows: dict[str, Tensor], head_VH: Tensor
) -> float:
    """The KL divergence of trained weights over all rows, in float32."""
    drafter.load_state_dict({name: state[name] for name in drafter.state_dict()})
    total, count = 0.0, len(rows["ids"])
    for number in range(count):
        row = batch_of(rows, number, 1)
        batch = Batch(
            ids_BT=row["ids"],
            captured_BTC=row["captured"].float(),
            final_BTH=row["final"].float(),
            weight_BT=counted_of(row["ids"]).float(),
        )
        settings: dict[str, Any] = {"steps": STEPS, "step_decay": STEP_DECAY}
        loss, _ = unrolled_loss(drafter, head_VH, batch, dtype=torch.float32, **settings)
        total += float(loss) - entropy(row, head_VH)
    return total / count


def compare_speed(ours: Trainer, theirs: Trainer, size: int, length: int, repeats: int) -> None:
    """Both in turns, after an update each to warm up; medians over repeats.

    speculators leaves the head as it is unless told otherwise, which costs less: once so too.
    """

    def speed(trainer: Trainer, first: int, *, freeze: bool = False) -> float:
        done = trainer.update(size, length, first, 1, freeze=freeze)
        return size * length / float(done["seconds"])

    pairs = [(speed(ours, number), speed(theirs, number)) for number in range(repeats + 1)][1:]
    frozen = speed(theirs, repeats + 1, freeze=True)
    print(f"{size} x {length}, positions a CPU second, median of {repeats}:")
    for name, each in zip(("eyas", "speculators"), zip(*pairs, strict=True), strict=True):
        print(f"  {name}: {statistics.median(each):.0f} ({min(each):.0f} to {max(each):.0f})")
    print(f"  speculators, its head left as it is, once: {frozen:.0f}")
    ratios = [a / b for a, b in pairs]
    print(
        f"  eyas / speculators: {statistics.median(ratios):.2f}"
        f" ({min(ratios):.2f} to {max(ratios):.2f})",
        flush=True,
    )


if __name__ == "__main__":
    main()
