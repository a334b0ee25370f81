"""A drafter of Kimi-K2.5's shape: accurate headers, holes for weights."""

from __future__ import annotations

import struct
from pathlib import Path

from eyas import dialects
from eyas.checkpoint import Checkpoint, write_sparse
from eyas.dialects import speculators
from eyas.errors import NotADrafterError
from eyas.spec import Eagle3Spec

# Kimi-K2.5's text model: hidden 7168, 61 layers, vocabulary 163840. The drafter of the story
# fused three states, 3 * 7168 = 21504, into 7168, and was Llama-shaped.
HIDDEN = 7168
INTERMEDIATE = 18432
HEADS = 64
KV_HEADS = 8
HEAD_DIM = 128
VOCAB = 163840
DRAFT_VOCAB = 32000

CONFIG = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "target_hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "num_hidden_layers": 1,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_DIM,
    "vocab_size": VOCAB,
    "draft_vocab_size": DRAFT_VOCAB,
    "max_position_embeddings": 262144,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "attention_bias": False,
    "tie_word_embeddings": False,
    "norm_before_residual": False,
    "rope_theta": 50000.0,
    "dtype": "bfloat16",
}

TARGET_CONFIG = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "model_type": "kimi_k25",
    "text_config": {
        "model_type": "kimi_k2",
        "hidden_size": HIDDEN,
        "num_hidden_layers": 61,
        "num_attention_heads": 64,
        "vocab_size": VOCAB,
    },
}


def write_kimi_drafter(directory: Path) -> None:
    """Write the sparse drafter, its layer named ``layers.0.*`` as in the story."""
    layer = "layers.0."
    matrices = {
        "fc.weight": (HIDDEN, 3 * HIDDEN),
        layer + "self_attn.q_proj.weight": (HEADS * HEAD_DIM, 2 * HIDDEN),
        layer + "self_attn.k_proj.weight": (KV_HEADS * HEAD_DIM, 2 * HIDDEN),
        layer + "self_attn.v_proj.weight": (KV_HEADS * HEAD_DIM, 2 * HIDDEN),
        layer + "self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD_DIM),
        layer + "mlp.gate_proj.weight": (INTERMEDIATE, HIDDEN),
        layer + "mlp.up_proj.weight": (INTERMEDIATE, HIDDEN),
        layer + "mlp.down_proj.weight": (HIDDEN, INTERMEDIATE),
        layer + "input_layernorm.weight": (HIDDEN,),
        layer + "hidden_norm.weight": (HIDDEN,),
        layer + "post_attention_layernorm.weight": (HIDDEN,),
        "norm.weight": (HIDDEN,),
        "lm_head.weight": (DRAFT_VOCAB, HIDDEN),
    }
    headers: dict[str, tuple[str, tuple[int, ...]]] = {
        name: ("BF16", shape) for name, shape in matrices.items()
    }
    headers["d2t"] = ("I64", (DRAFT_VOCAB,))
    headers["t2d"] = ("BOOL", (VOCAB,))
    spread = VOCAB // DRAFT_VOCAB
    kept = [draft * spread for draft in range(DRAFT_VOCAB)]
    mask = bytearray(VOCAB)
    for token in kept:
        mask[token] = 1
    offsets = struct.pack(f"<{DRAFT_VOCAB}q", *(token - i for i, token in enumerate(kept)))
    write_sparse(directory, CONFIG, headers, {"d2t": offsets, "t2d": bytes(mask)})


def write_kimi_as_saved(directory: Path, flat: Checkpoint) -> None:
    """Write the same drafter with the nested config that its trainer saved."""
    dialect, spec = dialects.read(flat)
    if not isinstance(spec, Eagle3Spec):
        raise NotADrafterError(f"{flat.location} is no EAGLE-3 drafter")
    roles = dialect.roles(flat)
    config, names = speculators.write(spec, set(roles.values()), dtype="bfloat16")
    headers = {
        names[role]: (flat.tensors[tensor].dtype, flat.tensors[tensor].shape)
        for tensor, role in roles.items()
    }
    maps = {names[role]: flat.read_bytes(role) for role in ("d2t", "t2d")}
    write_sparse(directory, config, headers, maps)
