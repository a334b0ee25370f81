from __future__ import annotations

from pathlib import Path

from eyas.data.prompts import one_turn
from eyas.data.windows import WINDOW, Windows
from eyas.model.load import load_tokenizer

TEXT = "The ferry to the island leaves at noon, and nobody on the quay knows when it will return."


def test_a_run_of_thirteen_tokens_is_found_wherever_it_stands(smollm2: Path) -> None:
    tokenizer = load_tokenizer(smollm2)
    ids = tokenizer(TEXT, add_special_tokens=False).input_ids
    windows = Windows(tokenizer, [one_turn("ferry", "qa", TEXT)])
    assert len(windows) == len(ids) - WINDOW + 1
    assert windows.touch([7, 7, *ids[2 : 2 + WINDOW], 7])
    assert not windows.touch([7, 7, *ids[2 : 1 + WINDOW], 7])
    assert not windows.touch(ids[: WINDOW - 1])


def test_a_short_prompt_has_none(smollm2: Path) -> None:
    windows = Windows(load_tokenizer(smollm2), [one_turn("short", "qa", "Who?")])
    assert len(windows) == 0
