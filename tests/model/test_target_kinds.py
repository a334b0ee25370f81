"""Targets of every kind: captured states against hooks, pieces against wholes, and rolling back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.model.tiny_targets import LAYERS, MAKERS, VOCAB, WINDOW, Hooked, qwen3_next, save
from torch import Tensor

from eyas.decode.greedy import generate
from eyas.errors import TargetError, UnsupportedError
from eyas.model.generic import GenericTarget
from eyas.model.llama import LlamaTarget
from eyas.model.load import load_target

BOUNDARIES = (0, LAYERS // 2, LAYERS)
LENGTH = 3 * WINDOW  # far beyond the window of a layer that slides


@pytest.fixture(scope="module", params=MAKERS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def directory(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(MAKERS[kind], tmp_path_factory.mktemp(kind) / "model")


@pytest.fixture(params=[torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    found: torch.dtype = request.param
    return found


@pytest.fixture
def ids() -> Tensor:
    return torch.randint(2, VOCAB - 1, (2, LENGTH), generator=torch.Generator().manual_seed(1))


def close(a: Tensor, b: Tensor, dtype: torch.dtype) -> None:
    if dtype is torch.float32:
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)
        return
    # bf16 keeps 8 bits, and transformers itself is 2 % off its own float32 after five layers
    assert a.shape == b.shape
    assert (a.float() - b.float()).norm() < 0.05 * b.float().norm()


def test_the_path_that_is_taken(kind: str, directory: Path) -> None:
    target = load_target(directory)
    compact = kind.startswith(("llama", "qwen"))
    assert isinstance(target, LlamaTarget if compact else GenericTarget)
    facts = target.facts
    assert (facts.hidden_size, facts.num_layers, facts.eos_ids) == (32, LAYERS, (1,))
    assert target.embedding_VH.shape == target.head_VH.shape == (facts.vocab_size, 32)
    assert target.embedding_VH.device == torch.device("cpu")


def test_captured_states_and_logits_are_those_of_hooks(
    directory: Path, dtype: torch.dtype, ids: Tensor
) -> None:
    logits, states = Hooked(directory, dtype).read(ids)
    target = load_target(directory, dtype=dtype, device="cpu")
    reading = target.forward(ids, target.new_cache(2, LENGTH), BOUNDARIES)
    assert reading.captured_BTC is not None
    assert reading.captured_BTC.dtype is reading.final_BTH.dtype is dtype
    assert states[0].std() > 0.05
    for captured, k in zip(reading.captured_BTC.chunk(3, dim=-1), BOUNDARIES, strict=True):
        close(captured, states[k], dtype)
    close(reading.final_BTH, states[LAYERS], dtype)
    close(target.logits(reading.final_BTH), logits, dtype)


def test_every_boundary_is_another_state(directory: Path, ids: Tensor) -> None:
    _, states = Hooked(directory, torch.float32).read(ids)
    target = load_target(directory)
    every = tuple(range(LAYERS + 1))
    captured = target.forward(ids, target.new_cache(2, LENGTH), every).captured_BTC
    assert captured is not None
    for k, found in enumerate(captured.chunk(LAYERS + 1, dim=-1)):
        nearest = min(every, key=lambda other: float((found - states[other]).abs().max()))
        assert nearest == k


def test_a_sequence_in_pieces_is_the_sequence(
    directory: Path, dtype: torch.dtype, ids: Tensor
) -> None:
    target = load_target(directory, dtype=dtype)
    whole = target.forward(ids, target.new_cache(2, LENGTH), BOUNDARIES).captured_BTC
    cache = target.new_cache(2, LENGTH)
    sizes = [WINDOW + 1, 1, 4, LENGTH - WINDOW - 6]
    pieces = [target.forward(p, cache, BOUNDARIES).captured_BTC for p in ids.split(sizes, dim=1)]
    assert cache.length == LENGTH
    assert whole is not None
    close(torch.cat([p for p in pieces if p is not None], dim=1), whole, dtype)


@pytest.mark.parametrize("kept", [2, WINDOW, 2 * WINDOW])
def test_rolling_back_leaves_no_trace(
    directory: Path, dtype: torch.dtype, ids: Tensor, kept: int
) -> None:
    target = load_target(directory, dtype=dtype)
    other = (ids + 7) % (VOCAB - 1)
    cache, fresh = target.new_cache(2, LENGTH), target.new_cache(2, LENGTH)
    target.forward(ids[:, :kept], cache)
    # rejected drafts, more of them than the window holds, and then two shorter rounds
    for rejected in (LENGTH - kept, 1, min(5, LENGTH - kept)):
        target.forward(other[:, kept : kept + rejected], cache)
        cache.rollback(kept)
    assert cache.length == kept
    again = target.forward(ids[:, kept:], cache)
    target.forward(ids[:, :kept], fresh)
    expected = target.forward(ids[:, kept:], fresh)
    torch.testing.assert_close(again.final_BTH, expected.final_BTH, atol=0, rtol=0)
    with pytest.raises(TargetError, match="cannot roll"):
        cache.rollback(LENGTH + 1)


def test_a_full_cache_is_refused(directory: Path, ids: Tensor) -> None:
    target = load_target(directory)
    with pytest.raises(TargetError, match="holds 10 tokens; 18 were asked for"):
        target.forward(ids, target.new_cache(2, 10))


def test_greedy_text_is_the_model_s_own(directory: Path, ids: Tensor) -> None:
    hooked, prompt = Hooked(directory, torch.float32), ids[0, :5].tolist()
    expected = list(prompt)
    for _ in range(2 * WINDOW):
        logits, _ = hooked.read(torch.tensor([expected]))
        expected.append(int(logits[0, -1].argmax()))
    found = generate(load_target(directory), prompt, max_new=2 * WINDOW, stop_at_eos=False)
    assert list(found.tokens) == expected[5:]


def test_a_gain_is_what_the_norm_multiplies_by(directory: Path) -> None:
    target = load_target(directory)
    ones = torch.ones(1, 1, 32)
    torch.testing.assert_close(target.final_norm_H, target.normed(ones)[0, 0], atol=1e-4, rtol=1e-4)


def test_a_missing_weight_is_no_random_one(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    model = save(MAKERS["qwen3"], tmp_path / "model")
    weights = load_file(model / "model.safetensors")
    del weights["model.layers.3.self_attn.q_norm.weight"]
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        TargetError, match=r"no tensor `model\.layers\.3\.self_attn\.q_norm\.weight`"
    ):
        load_target(model)


def test_a_recurrent_state_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="`LinearAttentionLayer`, whose state cannot be"):
        load_target(save(qwen3_next, tmp_path / "model"))


def test_the_embedded_target_is_captured_as_hooks_see_it(smollm2: Path) -> None:
    ids = torch.tensor([[1, 4093, 198, 1780, 314, 260, 5565]])
    logits, states = Hooked(smollm2, torch.float32).read(ids)
    target = load_target(smollm2)
    assert isinstance(target, LlamaTarget)
    last = target.facts.num_layers
    boundaries = (0, last // 2, last)
    reading = target.forward(ids, target.new_cache(1, 8), boundaries)
    assert reading.captured_BTC is not None
    for captured, k in zip(reading.captured_BTC.chunk(3, dim=-1), boundaries, strict=True):
        scale = float(states[k].abs().max())
        torch.testing.assert_close(captured, states[k], atol=1e-5 * scale, rtol=1e-4)
    torch.testing.assert_close(target.logits(reading.final_BTH), logits, atol=2e-3, rtol=1e-3)
