"""Tiny drafters on disk for the tiny Llama of conftest.py, and how engines take them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from eyas.checkpoint import Checkpoint, TensorBytes, open_checkpoint, open_target, write_checkpoint
from eyas.engines import EngineRef, Launch, read
from eyas.spec import Served

HIDDEN, VOCAB = 32, 97  # the tiny Llama's
HEADS, KV, D, INNER, DRAFTED = 4, 2, 8, 40, 24
LAYER = "midlayer."
_NAMES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.int64: "I64", torch.bool: "BOOL"}


def config(**changes: Any) -> dict[str, Any]:
    """A flat config; a change to None removes the key."""
    flat = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV,
        "head_dim": D,
        "hidden_act": "silu",
        "vocab_size": VOCAB,
        "draft_vocab_size": DRAFTED,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500.0,
        "norm_before_residual": False,
        **changes,
    }
    return {key: value for key, value in flat.items() if value is not None}


def tensors(layer: str = LAYER, **changes: Tensor | None) -> dict[str, Tensor]:
    """Random weights by tensor name.

    `changes` are by role with `__` for each dot, from `self_attn__` and `mlp__` on for what is in
    the layer; None leaves one out.
    """
    random = torch.Generator().manual_seed(7)

    def matrix(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random) * 0.3

    inner = {
        "self_attn.q_proj.weight": matrix(HEADS * D, 2 * HIDDEN),
        "self_attn.k_proj.weight": matrix(KV * D, 2 * HIDDEN),
        "self_attn.v_proj.weight": matrix(KV * D, 2 * HIDDEN),
        "self_attn.o_proj.weight": matrix(HIDDEN, HEADS * D),
        "mlp.gate_proj.weight": matrix(INNER, HIDDEN),
        "mlp.up_proj.weight": matrix(INNER, HIDDEN),
        "mlp.down_proj.weight": matrix(HIDDEN, INNER),
        "input_layernorm.weight": 1 + matrix(HIDDEN),
        "hidden_norm.weight": 1 + matrix(HIDDEN),
        "post_attention_layernorm.weight": 1 + matrix(HIDDEN),
    }
    outer = {
        "fc.weight": matrix(HIDDEN, 3 * HIDDEN),
        "norm.weight": 1 + matrix(HIDDEN),
        "lm_head.weight": matrix(DRAFTED, HIDDEN),
        "d2t": torch.arange(DRAFTED) * 3,  # draft id i is target id 4i
    }
    for key, tensor in changes.items():
        name = key.replace("__", ".")
        part = inner if name in inner or name.startswith(("self_attn.", "mlp.")) else outer
        part.pop(name, None)
        if tensor is not None:
            part[name] = tensor
    return {layer + name: tensor for name, tensor in inner.items()} | outer


def save(directory: Path, values: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Checkpoint:
    """Write a drafter and open it."""
    written = {
        name: TensorBytes(
            dtype=_NAMES[tensor.dtype],
            shape=tuple(tensor.shape),
            data=tensor.contiguous().view(torch.uint8).numpy().tobytes(),
        )
        for name, tensor in weights.items()
    }
    return open_checkpoint(str(write_checkpoint(directory, values, written)))


def served_by(engine: str, checkpoint: Checkpoint, target: Path, *launch: str) -> Served:
    """What `engine` makes of `checkpoint`."""
    found = read(
        EngineRef.parse(engine),
        checkpoint,
        target=open_target(str(target)),
        launch=Launch.parse(launch),
    )
    assert isinstance(found, Served), found
    return found
