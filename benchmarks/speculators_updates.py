"""speculators 0.9.0's side of benchmarks/train_throughput.py, which starts it.

    PYTHON-WITH-SPECULATORS benchmarks/speculators_updates.py FOLDER sdpa|eager packed|apart

How its environment is made: tests/model/make_speculators_fixtures.py. eyas is not imported. The
model, its loss (KL divergence, the default) and its metrics are speculators' own; `packed` gives
it a batch as its collation does, rows one behind another in one sequence with document ids, but
without padding, and `apart` a row at a time. Its flex attention is not offered: on a CPU, where
speculators does not compile, that holds all scores and has no gradient.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from speculators.losses import resolve_loss_config
from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig
from timed_updates import STEP_DECAY, STEPS, counted_of, obey
from torch import Tensor

NOT_TRAINED = ("embed_tokens.weight", "verifier_lm_head.weight", "verifier_norm.weight")


def main(folder: Path, attention: str, layout: str) -> None:
    """Train on commands."""
    model = drafter_of(folder, attention)
    loss_config = resolve_loss_config("kl_div", "eager")  # the other kind is a GPU's

    def loss_of_one(documents: dict[str, Tensor]) -> Tensor:
        """Of documents [B, T], as shift_batch and the collation of speculators lay them out."""
        counted_BT, (count, length) = counted_of(documents["ids"]), documents["ids"].shape
        positions_T = torch.arange(1, length)
        _, loss, _ = model(
            input_ids=documents["ids"][:, 1:].reshape(1, -1),
            hidden_states=documents["captured"][:, :-1].flatten(0, 1)[None],
            verifier_last_hidden_states=documents["last"][:, 1:].flatten(0, 1)[None],
            loss_mask=counted_BT[:, 1:].reshape(1, -1),
            document_ids=torch.arange(count).repeat_interleave(length - 1)[None],
            position_ids=positions_T.repeat(count)[None],
            ttt_steps=STEPS,
            ttt_step_loss_decay=STEP_DECAY,
            loss_config=loss_config,
        )
        return loss

    def loss_of_each(rows: dict[str, Tensor]) -> Tensor:
        """The mean over rows, of which all have as many positions that count."""
        count = len(rows["ids"])
        each = [{name: held[i : i + 1] for name, held in rows.items()} for i in range(count)]
        return torch.stack([loss_of_one(row) for row in each]).mean()

    loss_of = {"packed": loss_of_one, "apart": loss_of_each}[layout]
    obey(folder, model, model.lm_head.weight, loss_of)


def drafter_of(folder: Path, attention: str) -> Eagle3DraftModel:
    """speculators' model with the weights that eyas wrote, in float32, its head trained too."""
    config = Eagle3SpeculatorConfig.from_pretrained(folder / "drafter")
    config.speculators_config.verifier.name_or_path = None
    config.transformer_layer_config._attn_implementation = attention  # noqa: SLF001
    model = Eagle3DraftModel(config)
    lent = load_file(folder / "target.safetensors")
    weights = load_file(folder / "drafter" / "model.safetensors") | lent
    state = {
        name: held.float() if held.is_floating_point() else held for name, held in weights.items()
    }
    model.load_state_dict(state, strict=True)
    model = model.float()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in NOT_TRAINED)
    return model


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
