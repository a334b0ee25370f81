"""A tiny target, and an oracle that stands in for its drafter (a mock).

The oracle knows the target's own continuation and spoils some of its drafts, so that every number
of acceptances occurs, which no trained drafter guarantees.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from eyas.model.llama import LlamaTarget
from eyas.model.target import LoadedFacts, TargetSizes
from eyas.spec import LastState, declared

HIDDEN, HEADS, KV_HEADS, INTERMEDIATE, VOCAB, LAYERS = 32, 4, 2, 48, 61, 3


def tiny_target(seed: int = 0, eos_ids: tuple[int, ...] = (), layers: int = LAYERS) -> LlamaTarget:
    random_state = torch.Generator().manual_seed(seed)

    def matrix(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random_state) * shape[-1] ** -0.5

    width = HIDDEN // HEADS
    weights = {
        "model.embed_tokens.weight": matrix(VOCAB, HIDDEN) * 4,
        "lm_head.weight": matrix(VOCAB, HIDDEN) * 4,
        "model.norm.weight": torch.ones(HIDDEN),
    }
    for index in range(layers):
        prefix = f"model.layers.{index}."
        weights |= {
            prefix + "self_attn.q_proj.weight": matrix(HIDDEN, HIDDEN),
            prefix + "self_attn.k_proj.weight": matrix(KV_HEADS * width, HIDDEN),
            prefix + "self_attn.v_proj.weight": matrix(KV_HEADS * width, HIDDEN),
            prefix + "self_attn.o_proj.weight": matrix(HIDDEN, HIDDEN),
            prefix + "mlp.gate_proj.weight": matrix(INTERMEDIATE, HIDDEN),
            prefix + "mlp.up_proj.weight": matrix(INTERMEDIATE, HIDDEN),
            prefix + "mlp.down_proj.weight": matrix(HIDDEN, INTERMEDIATE),
            prefix + "input_layernorm.weight": torch.ones(HIDDEN),
            prefix + "post_attention_layernorm.weight": torch.ones(HIDDEN),
        }
    facts = LoadedFacts(
        name="tiny",
        directory=Path(),
        architecture="LlamaForCausalLM",
        hidden_size=HIDDEN,
        num_layers=layers,
        vocab_size=VOCAB,
        eos_ids=eos_ids,
        dtype=torch.float32,
    )
    sizes = TargetSizes(
        heads=HEADS,
        kv_heads=KV_HEADS,
        head_dim=width,
        intermediate=INTERMEDIATE,
        rms_eps=1e-5,
        rope_theta=1e4,
        max_positions=256,
    )
    return LlamaTarget(facts, sizes, weights, torch.device("cpu"), tied=False)


class CountingCache:
    """Holds the tokens that were fed, so that the oracle knows where in the answer it stands."""

    def __init__(self) -> None:
        self.fed: list[int] = []

    def rollback(self, length: int) -> None:
        assert 0 <= length <= len(self.fed)
        del self.fed[length:]


@dataclass
class Oracle:
    """Drafts the true continuation, spoiling each token with probability `error`."""

    text: tuple[int, ...]  # prompt and the target's own answer
    error: float
    spec: Any = field(
        default_factory=lambda: SimpleNamespace(
            conditioning=LastState(
                reason=declared("mock", "test"), after_final_norm=declared(True, "test")
            )
        )
    )
    coin: random.Random = field(default_factory=lambda: random.Random(0))

    def new_cache(self, batch: int, capacity: int) -> CountingCache:
        return CountingCache()

    def step(self, ids_BT: Tensor, hidden_BTH: Tensor, cache: CountingCache) -> Tensor:
        assert ids_BT.shape[1] == hidden_BTH.shape[1]
        cache.fed += ids_BT[0].tolist()
        # everything fed so far is x[1:], so the next token is at len(fed) + 1
        place = len(cache.fed) + 1
        token = self.text[place] if place < len(self.text) else 0
        if self.coin.random() < self.error:
            token = (token + 1) % VOCAB
        return torch.full((1, ids_BT.shape[1], 1), float(token))

    def feedback(self, output: Tensor) -> Tensor:
        return output

    def logits(self, output: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(output[..., 0].long(), VOCAB).float()

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        return draft_ids


PROMPT = (7, 3, 41, 12, 5)
