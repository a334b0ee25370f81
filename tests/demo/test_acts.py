"""The demo goes as the story tells: once as a user runs it, and act 6 on its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyas.checkpoint import open_checkpoint
from eyas.cli import main
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


def test_the_whole_demo_as_a_user_runs_it(
    smollm2: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    main(["demo", "--max-new", "12", "--quiet", "--keep", str(kept)])
    said = capsys.readouterr().out
    verdicts = [line.strip()[0] for line in said.splitlines() if line.startswith(("   ✓", "   ✗"))]
    assert len(verdicts) == 6
    # twelve tokens are too few for the floor of act 1, which tests/decode/test_smollm2.py holds
    assert verdicts[1:] == ["✓"] * 5
    assert "24 of 24 answers equal" in said
    assert "Expected against as served" in said
    for name in ("flattened", "converted", "kimi-k2.5-flattened"):
        assert (kept / name / "model.safetensors").is_file()
