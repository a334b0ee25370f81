"""State shards of one target, one choice of boundaries and one set of answers, and no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from safetensors.torch import save_file
from tests.decode.oracle import tiny_target
from torch import Tensor

from eyas.data.conversation import Conversation, write_shard
from eyas.data.states import StateStore, capture, capture_directory
from eyas.errors import UsageError
from eyas.model.target import Target

SAID = [
    Conversation(id="a", category="x", ids=(3, 4, 5, 6), prompt_length=2, temperature=0.0),
    Conversation(id="b", category="x", ids=(7, 8, 9), prompt_length=1, temperature=0.0),
]


def captured(folder: Path, boundaries: tuple[int, ...] = (0, 1), name: str = "tiny") -> Path:
    target = tiny_target()
    target.facts = replace(target.facts, name=name)
    (folder / "answers").mkdir(parents=True, exist_ok=True)
    if not (folder / "answers" / "answers-00000.jsonl").exists():
        write_shard(folder / "answers" / "answers-00000.jsonl", SAID)
    capture_directory(target, boundaries, folder / "answers", folder / "states", lambda _, __: None)
    return folder / "states"


def test_a_store_says_whose_states_it_holds(tmp_path: Path) -> None:
    store = StateStore([captured(tmp_path / "one"), captured(tmp_path / "two")])
    assert len(store) == 4
    assert store.origin.target == "tiny"
    assert store.origin.boundaries == (0, 1)


def test_a_mixture_is_refused(tmp_path: Path) -> None:
    first = captured(tmp_path / "one")
    with pytest.raises(UsageError, match="states of `tiny` at 1, 0, the shards before it of"):
        StateStore([first, captured(tmp_path / "two", (1, 0))])
    with pytest.raises(UsageError, match="states of `other` at 0, 1, the shards before it of"):
        StateStore([first, captured(tmp_path / "three", name="other")])


def test_a_shard_that_does_not_say_is_refused(tmp_path: Path) -> None:
    save_file({"ids": torch.arange(3)}, tmp_path / "states-00000.safetensors")
    with pytest.raises(UsageError, match="is no shard of states"):
        StateStore([tmp_path])


def test_a_target_reads_on_its_own_device() -> None:
    class SeenError(Exception):
        pass

    class Elsewhere:
        """A target on the device that computes nothing."""

        embedding_VH = torch.empty(4, 2, device="meta")

        def new_cache(self, batch: int, capacity: int) -> None:
            return None

        def forward(self, ids_BT: Tensor, cache: None, boundaries: object) -> None:
            raise SeenError(ids_BT.device.type)

    with pytest.raises(SeenError, match="meta"):
        capture(cast("Target", Elsewhere()), (0, 1), SAID)


def test_a_kept_shard_of_something_else_is_refused(tmp_path: Path) -> None:
    captured(tmp_path)
    captured(tmp_path)  # the same again: kept
    with pytest.raises(UsageError, match="states of `tiny` at 0, 1, not of `tiny` at 1, 0"):
        captured(tmp_path, (1, 0))
    with pytest.raises(UsageError, match="not of `other` at 0, 1"):
        captured(tmp_path, name="other")
    write_shard(tmp_path / "answers" / "answers-00000.jsonl", SAID[::-1])
    with pytest.raises(UsageError, match="states of other answers"):
        captured(tmp_path)
