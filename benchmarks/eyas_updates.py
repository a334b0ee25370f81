"""eyas's side of benchmarks/train_throughput.py, which starts it.

python benchmarks/eyas_updates.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from timed_updates import STEP_DECAY, STEPS, counted_of, obey
from torch import Tensor

from eyas.checkpoint import open_checkpoint
from eyas.model.load import load_target
from eyas.model.trained import trained_drafter
from eyas.train.batches import Batch
from eyas.train.loss import unrolled_loss


def main(folder: Path) -> None:
    """Train on commands."""
    target = load_target("smollm2", dtype=torch.bfloat16)
    drafter = trained_drafter(open_checkpoint(folder / "drafter"), target).float()
    teacher_head_VH = target.head_VH[drafter.target_ids(torch.arange(drafter.shape.draft_vocab))]

    def loss_of(rows: dict[str, Tensor]) -> Tensor:
        batch = Batch(
            ids_BT=rows["ids"],
            captured_BTC=rows["captured"],
            final_BTH=rows["final"],
            weight_BT=counted_of(rows["ids"]).float(),
        )
        settings = {"steps": STEPS, "step_decay": STEP_DECAY, "dtype": torch.bfloat16}
        return unrolled_loss(drafter, teacher_head_VH, batch, **settings)[0]

    obey(folder, drafter, drafter.lm_head.weight, loss_of)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
