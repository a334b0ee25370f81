"""The rows of a head tell whose tokens they are."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from eyas.checkpoint import open_checkpoint
from eyas.diagnose.bench import Bench
from eyas.diagnose.causes import CauseId
from eyas.diagnose.change import with_facts
from eyas.diagnose.head_rows import renamed
from eyas.diagnose.reading import declared
from eyas.diagnose.variant import Variant
from eyas.spec import VocabMap


@pytest.fixture(scope="module")
def trained(bench: Bench, trained_here: Path) -> Variant:
    return declared(open_checkpoint(trained_here), bench.target).variant


def test_a_sound_head_is_left_alone(bench: Bench, trained: Variant) -> None:
    assert renamed(trained, bench.target) is None


def test_rows_in_another_order_are_put_back(bench: Bench, trained: Variant) -> None:
    head = trained.state["lm_head.weight"]
    order = torch.randperm(len(head), generator=torch.Generator().manual_seed(3))
    change = renamed(trained.with_state({"lm_head.weight": head[order]}), bench.target)
    assert change is not None
    assert change.cause is CauseId.HEAD_ROWS
    same = (change.variant.state["lm_head.weight"] == head).all(dim=-1)
    assert float(same.float().mean()) > 0.999


def test_a_map_of_other_rows_is_found_again(bench: Bench, trained: Variant) -> None:
    d2t = trained.state["d2t"]
    change = renamed(trained.with_state({"d2t": d2t + 1}), bench.target)
    assert change is not None
    assert change.cause is CauseId.MAP_WRONG
    # two of the first special tokens have all but the same row
    assert float((change.variant.state["d2t"] == d2t).float().mean()) > 0.999


def test_ids_read_as_offsets_are_only_another_form(bench: Bench, trained: Variant) -> None:
    read = with_facts(trained, vocab_map=VocabMap.ABSOLUTE)
    change = renamed(read, bench.target)
    assert change is not None
    assert change.cause is CauseId.MAP_ABSOLUTE
    assert change.variant.spec.vocab_map.value is VocabMap.OFFSETS


def test_a_head_that_is_like_nothing_tells_nothing(bench: Bench, trained: Variant) -> None:
    head = trained.state["lm_head.weight"]
    noise = torch.randn(head.shape, generator=torch.Generator().manual_seed(4))
    assert renamed(trained.with_state({"lm_head.weight": noise}), bench.target) is None
