"""What these tests share: a bench of eight prompts, and damaged copies of a drafter."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from eyas.checkpoint import Checkpoint, open_checkpoint
from eyas.data.prompts import OWN_PROMPTS
from eyas.demo.views import flatten
from eyas.diagnose.bench import Bench, open_bench

# Of five categories.
CHOSEN = (0, 2, 5, 9, 12, 14, 17, 21)
Damage = Callable[[dict[str, Any], dict[str, Tensor]], None]
Damaged = Callable[[Damage | None], Checkpoint]


@pytest.fixture(scope="session")
def few_prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight of eyas's own prompts."""
    lines = OWN_PROMPTS.read_text(encoding="utf-8").splitlines()
    file = tmp_path_factory.mktemp("prompts") / "few.jsonl"
    file.write_text("\n".join(lines[i] for i in CHOSEN) + "\n", encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def bench(smollm2: Path, few_prompts: Path) -> Bench:
    """SmolLM2 and what it answers to them."""
    return open_bench(smollm2, few_prompts)


@pytest.fixture(scope="session")
def flat(trained_here: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drafter with a flat config, its layer named ``layers.0.*``."""
    folder = tmp_path_factory.mktemp("flat") / "draft"
    flatten(open_checkpoint(trained_here), folder)
    return folder


@pytest.fixture
def damaged(flat: Path, tmp_path: Path) -> Damaged:
    """Copies the flat drafter, after a function has changed its config and its tensors."""

    def make(damage: Damage | None) -> Checkpoint:
        config = json.loads((flat / "config.json").read_text())
        tensors = load_file(flat / "model.safetensors")
        if damage is not None:
            damage(config, tensors)
        folder = tmp_path / "draft"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        whole = {name: held.contiguous() for name, held in tensors.items()}
        save_file(whole, folder / "model.safetensors")
        return open_checkpoint(folder)

    return make


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """The machine is shared, and the sums are then the same in every run."""
    torch.set_num_threads(1)
