"""A tiny Llama as transformers writes it, and a drafter for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

LAYERS, HIDDEN, VOCAB = 8, 32, 97


def save_tiny_llama(directory: Path, *, tied: bool) -> Path:
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=HIDDEN,
        intermediate_size=48,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        vocab_size=VOCAB,
        max_position_embeddings=128,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        initializer_range=0.2,
        tie_word_embeddings=tied,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(directory)
    return directory


@pytest.fixture(scope="session", params=[True, False], ids=["tied", "untied"])
def tiny_llama(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("llama") / "model", tied=request.param)


@pytest.fixture
def ids_BT() -> torch.Tensor:
    return torch.randint(0, VOCAB, (2, 11), generator=torch.Generator().manual_seed(1))
