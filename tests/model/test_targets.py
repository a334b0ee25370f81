"""Both targets against transformers, and against themselves in pieces."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from eyas.errors import TargetError, UnsupportedError
from eyas.model.generic import GenericTarget, load_generic
from eyas.model.llama import LlamaTarget
from eyas.model.load import eos_ids_of, is_compact, load_target, read_weights
from eyas.model.target import Target

LAYERS = 8
BOUNDARIES = (0, 2, 5, LAYERS)


def generic(directory: Path) -> Target:
    return load_generic(
        "tiny", directory, eos_ids=(1,), dtype=torch.float32, device=torch.device("cpu")
    )


@pytest.fixture(params=[load_target, generic], ids=["compact", "generic"])
def target(request: pytest.FixtureRequest, tiny_llama: Path) -> Target:
    loaded: Target = request.param(tiny_llama)
    return loaded


def reference(directory: Path, ids_BT: Tensor) -> tuple[Tensor, Tensor]:
    """transformers' logits and the states at BOUNDARIES, the last one from a hook."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    last: list[Any] = []
    model.model.layers[-1].register_forward_hook(lambda _, __, out: last.append(out))
    with torch.no_grad():
        out = model(ids_BT, output_hidden_states=True)
    before_norm = last[0][0] if isinstance(last[0], tuple) else last[0]
    states = [out.hidden_states[k] for k in BOUNDARIES[:-1]] + [before_norm]
    return out.logits, torch.cat(states, dim=-1)


def test_logits_and_captured_states_are_transformers_own(
    target: Target, tiny_llama: Path, ids_BT: Tensor
) -> None:
    logits, states = reference(tiny_llama, ids_BT)
    reading = target.forward(ids_BT, target.new_cache(2, 16), BOUNDARIES)
    assert reading.captured_BTC is not None
    torch.testing.assert_close(target.logits(reading.final_BTH), logits, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(reading.captured_BTC, states, atol=2e-5, rtol=1e-4)


def test_a_sequence_in_pieces_is_the_sequence(target: Target, ids_BT: Tensor) -> None:
    whole = target.forward(ids_BT, target.new_cache(2, 16), BOUNDARIES)
    cache = target.new_cache(2, 16)
    pieces = [
        target.forward(piece, cache, BOUNDARIES) for piece in ids_BT.split([4, 1, 3, 3], dim=1)
    ]
    assert cache.length == ids_BT.shape[1]
    joined = torch.cat([piece.final_BTH for piece in pieces], dim=1)
    torch.testing.assert_close(joined, whole.final_BTH, atol=2e-5, rtol=1e-4)
    assert pieces[1].captured_BTC is not None
    assert whole.captured_BTC is not None
    torch.testing.assert_close(
        pieces[1].captured_BTC, whole.captured_BTC[:, 4:5], atol=2e-5, rtol=1e-4
    )


def test_rolling_back_leaves_no_trace(target: Target, ids_BT: Tensor) -> None:
    cache = target.new_cache(2, 24)
    target.forward(ids_BT[:, :6], cache)
    target.forward((ids_BT[:, 6:] + 5) % 97, cache)
    cache.rollback(6)
    again = target.forward(ids_BT[:, 6:], cache)
    fresh = target.new_cache(2, 24)
    target.forward(ids_BT[:, :6], fresh)
    torch.testing.assert_close(
        again.final_BTH, target.forward(ids_BT[:, 6:], fresh).final_BTH, atol=0, rtol=0
    )
    with pytest.raises(TargetError, match="cannot roll"):
        cache.rollback(99)


def test_a_boundary_beyond_the_last_layer_is_refused(target: Target, ids_BT: Tensor) -> None:
    cache = target.new_cache(2, 16)
    for unknown in (9, -1):
        with pytest.raises(TargetError, match=f"boundaries 0 to 8, not {unknown}"):
            target.forward(ids_BT, cache, (2, unknown))
    assert cache.length == 0


def test_facts(target: Target) -> None:
    facts = target.facts
    assert (facts.hidden_size, facts.num_layers, facts.vocab_size) == (32, 8, 97)
    assert facts.eos_ids == (1,)
    assert target.embedding_VH.shape == target.head_VH.shape == (97, 32)


def test_rows_padded_on_the_left_are_the_rows_alone(tiny_llama: Path, ids_BT: Tensor) -> None:
    target = load_target(tiny_llama)
    assert isinstance(target, LlamaTarget)
    padded = ids_BT.clone()
    padded[0, :4] = 0
    cache = target.new_cache(2, 16, torch.tensor([4, 0]))
    together = target.forward(padded, cache).final_BTH
    alone = target.forward(ids_BT[:1, 4:], target.new_cache(1, 16)).final_BTH
    torch.testing.assert_close(together[:1, 4:], alone, atol=2e-5, rtol=1e-4)
    keys = cache.keys[0]
    empty = torch.full_like(keys[:, :, 11:], 7.0)  # no slot that is not filled is touched
    keys[:, :, 11:] = empty
    cache.keep_rows(torch.tensor([0]))
    assert torch.equal(keys[:, :, 11:], empty)
    assert cache.keys[0].data_ptr() == keys.data_ptr()
    next_id = torch.tensor([[7]])
    kept = target.forward(next_id, cache).final_BTH
    single = target.new_cache(1, 16)
    target.forward(ids_BT[:1, 4:], single)
    torch.testing.assert_close(
        kept, target.forward(next_id, single).final_BTH, atol=2e-5, rtol=1e-4
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [("missing", "has no tensor `model.norm.weight`"), ("surplus", "does not explain: `extra`")],
)
def test_weights_are_read_strictly(tiny_llama: Path, change: str, said: str) -> None:
    target = load_target(tiny_llama)
    assert isinstance(target, LlamaTarget)
    weights = read_weights(tiny_llama)
    if change == "missing":
        del weights["model.norm.weight"]
    else:
        weights["extra"] = torch.zeros(1)
    tied = "lm_head.weight" not in weights
    with pytest.raises(TargetError, match=said):
        LlamaTarget(target.facts, target.sizes, weights, torch.device("cpu"), tied=tied)


def test_any_rows_may_be_kept_in_any_order(tiny_llama: Path) -> None:
    target = load_target(tiny_llama)
    assert isinstance(target, LlamaTarget)
    ids_BT = torch.arange(4 * 6).reshape(4, 6)
    cache = target.new_cache(4, 12, torch.tensor([0, 1, 2, 3]))
    target.forward(ids_BT, cache)
    keys, values = [k.clone() for k in cache.keys], [v.clone() for v in cache.values]
    rows = torch.tensor([3, 1])
    cache.keep_rows(rows)
    assert cache.starts_B is not None
    assert cache.starts_B.tolist() == [3, 1]
    for layer, (before, after) in enumerate(zip(keys, cache.keys, strict=True)):
        assert torch.equal(after[:, :, :6], before[rows][:, :, :6])
        assert torch.equal(cache.values[layer][:, :, :6], values[layer][rows][:, :, :6])


def test_a_table_that_follows_from_the_config_is_no_surplus(
    tiny_llama: Path, tmp_path: Path
) -> None:
    from safetensors.torch import save_file

    shutil.copy(tiny_llama / "config.json", tmp_path)
    weights = read_weights(tiny_llama)
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(4)
    save_file(weights, tmp_path / "model.safetensors")
    assert isinstance(load_target(tmp_path), LlamaTarget)


def test_quantised_weights_are_left_to_transformers(tiny_llama: Path) -> None:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(tiny_llama)
    assert is_compact(config)
    config.quantization_config = {"quant_method": "fp8"}
    assert not is_compact(config)


def test_the_end_of_an_answer_may_be_stated_nowhere_or_by_a_text_config(tmp_path: Path) -> None:
    from transformers import LlamaConfig, LlavaConfig, PretrainedConfig

    assert eos_ids_of(tmp_path, PretrainedConfig()) == ()
    wrapper = LlavaConfig(text_config=LlamaConfig(eos_token_id=[5, 7]))
    assert eos_ids_of(tmp_path, wrapper) == (5, 7)


def test_a_full_cache_is_refused(tiny_llama: Path, ids_BT: Tensor) -> None:
    target = load_target(tiny_llama)
    with pytest.raises(TargetError, match="holds 10 tokens; 11 were asked for"):
        target.forward(ids_BT, target.new_cache(2, 10))


@pytest.mark.parametrize("name", ["no-such-directory", "a/b/c", "./missing"])
def test_a_name_that_is_no_target(name: str) -> None:
    with pytest.raises(TargetError, match=r"give a local directory, `smollm2`, or a Hub id"):
        load_target(name)


def test_an_empty_directory_is_no_target(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no config that transformers reads"):
        load_target(tmp_path)


def test_the_head_is_probed_within_one_pass(tiny_llama: Path) -> None:
    """A model no two passes of which are alike, as passes of bf16 are not."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_llama, dtype=torch.bfloat16).eval()
    noise = torch.Generator().manual_seed(0)

    def shake(_: Any, __: Any, out: Tensor) -> Tensor:
        return out + torch.randn(out.shape, generator=noise, dtype=out.dtype)

    model.model.embed_tokens.register_forward_hook(shake)
    facts = replace(generic(tiny_llama).facts, dtype=torch.bfloat16)
    assert GenericTarget(facts, model).facts == facts


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_soft_cap_on_small_logits_is_seen(tiny_llama: Path, dtype: torch.dtype) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_llama, dtype=dtype).eval()
    facts = replace(generic(tiny_llama).facts, dtype=dtype)

    def cap(_: Any, __: Any, logits: Tensor) -> Tensor:
        # far above the logits, it changes them by less than one part in a thousand
        limit = 25 * float(logits.abs().max())
        return limit * torch.tanh(logits.float() / limit)

    model.lm_head.register_forward_hook(cap)
    with pytest.raises(UnsupportedError, match="soft cap or a scaling"):
        GenericTarget(facts, model)


def test_logits_beyond_the_head_are_refused(tmp_path: Path) -> None:
    from transformers import GraniteConfig, GraniteForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    config = GraniteConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=97,
        logits_scaling=3.0,
    )
    GraniteForCausalLM(config).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedError, match="soft cap or a scaling"):
        load_target(tmp_path)
