"""A prompt in pieces is the prompt, and no forward is longer than a piece."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.decode.oracle import LAYERS, VOCAB, Oracle, tiny_target
from tests.model.drafter_cases import CASES, HIDDEN, random_drafter

from eyas.decode import prefill
from eyas.decode.greedy import generate
from eyas.decode.prefill import PIECE, last_output, read_prompt

LENGTH = 37


def test_a_target_reads_a_prompt_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    target, boundaries = tiny_target(), (0, 2, LAYERS)
    ids_1T = torch.randint(0, VOCAB, (1, LENGTH), generator=torch.Generator().manual_seed(1))
    whole = target.forward(ids_1T, target.new_cache(1, LENGTH), boundaries)
    monkeypatch.setattr(prefill, "PIECE", 8)
    cache = target.new_cache(1, LENGTH)
    found = read_prompt(target, ids_1T, cache, boundaries)
    assert cache.length == LENGTH
    torch.testing.assert_close(found.final_BTH, whole.final_BTH)
    torch.testing.assert_close(found.captured_BTC, whole.captured_BTC)
    without = read_prompt(target, ids_1T, target.new_cache(1, LENGTH))
    assert without.captured_BTC is None


@pytest.mark.parametrize("kind", ["plain", "two layers", "latent, every flag"])
@torch.inference_mode()
def test_a_drafter_reads_a_prompt_in_pieces(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drafter = random_drafter(CASES[kind].spec())
    chance = torch.Generator().manual_seed(1)
    ids_1T = torch.randint(0, 15, (1, LENGTH), generator=chance)
    hidden_1TH = torch.randn(1, LENGTH, HIDDEN, generator=chance, dtype=torch.float64)
    whole = drafter.step(ids_1T, hidden_1TH, drafter.new_cache(1, LENGTH))[:, -1:]
    monkeypatch.setattr(prefill, "PIECE", 8)
    cache = drafter.new_cache(1, LENGTH)
    torch.testing.assert_close(last_output(drafter, ids_1T, hidden_1TH, cache), whole)
    assert cache.length == LENGTH


def test_no_forward_is_longer_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    target = tiny_target()
    prompt = tuple(i * i % VOCAB for i in range(2 * PIECE + 5))
    widths: list[int] = []
    forward = target.forward

    def counted(ids_BT: torch.Tensor, *rest: Any) -> Any:
        widths.append(ids_BT.shape[1])
        return forward(ids_BT, *rest)

    monkeypatch.setattr(target, "forward", counted)
    plain = generate(target, prompt, max_new=12)
    assert widths[:4] == [PIECE, PIECE, 5, 1]
    widths.clear()
    oracle: Any = Oracle(text=prompt + plain.tokens, error=0.3)
    step = oracle.step

    def stepped(ids_BT: torch.Tensor, *rest: Any) -> Any:
        widths.append(ids_BT.shape[1])
        return step(ids_BT, *rest)

    oracle.step = stepped
    drafted = generate(target, prompt, max_new=12, drafter=oracle, steps=3)
    assert drafted.tokens == plain.tokens
    # the target's pieces, and then the drafter's
    assert widths[:7] == [PIECE, PIECE, 5, PIECE, PIECE, 5, 1]
    assert max(widths) == PIECE
