"""The acts that need no model to run; the others are proved in tests/decode/test_smollm2.py."""

from __future__ import annotations

from pathlib import Path

from eyas.checkpoint import open_checkpoint
from eyas.demo.acts import at_full_size
from eyas.demo.kimi import HIDDEN, write_kimi_drafter


def test_a_drafter_of_full_size_gets_the_storys_verdicts(tmp_path: Path) -> None:
    act = at_full_size(tmp_path)
    assert act.verdict.startswith("the same verdicts")
    refused, old, new, vllm, eagle = act.details
    assert "refuses at config" in refused
    assert "loses 10 of 15 tensors and leaves 7 parameters unfilled" in old
    assert "15 of 15 tensors" in new
    assert "15 of 15 tensors" in vllm
    assert eagle.endswith("fc is bypassed")


def test_it_is_as_large_as_the_storys_and_takes_no_room(tmp_path: Path) -> None:
    write_kimi_drafter(tmp_path / "kimi")
    drafter = open_checkpoint(tmp_path / "kimi")
    assert drafter.tensors["fc.weight"].shape == (HIDDEN, 3 * HIDDEN) == (7168, 21504)
    file = tmp_path / "kimi" / "model.safetensors"
    assert file.stat().st_size > 1.9e9
    assert file.stat().st_blocks * 512 < 10e6
