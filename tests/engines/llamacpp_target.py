"""Writes a Llama target as llama.cpp's own converter would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter
from gguf.quants import quantize

from eyas.checkpoint import open_checkpoint, open_target
from eyas.checkpoint.gguf_tokenizer import tokenizer_keys
from eyas.checkpoint.rows import StoredRows, blocks
from eyas.dialects.rope_rows import to_neighbours


def write_target(smollm2: Path, path: Path, kind: GGMLQuantizationType) -> Path:
    """The embedded target as the new GGUF file `path`, its matrices in `kind`."""
    facts, weights = open_target(smollm2), open_checkpoint(smollm2)
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(facts.num_layers)
    writer.add_context_length(facts.max_position_embeddings)
    writer.add_embedding_length(facts.hidden_size)
    writer.add_feed_forward_length(facts.intermediate_size)
    writer.add_head_count(facts.num_attention_heads)
    writer.add_head_count_kv(facts.num_key_value_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(facts.rope_theta)
    writer.add_vocab_size(facts.vocab_size)
    for key, value in tokenizer_keys(facts, facts.vocab_size).items():
        of = None if value.of is None else GGUFValueType(value.of)
        writer.add_key_value(key, value.value, GGUFValueType(value.kind), sub_type=of)
    template = (smollm2 / "chat_template.jinja").read_text(encoding="utf-8")
    writer.add_chat_template(template)
    for name, header in weights.tensors.items():
        raw = np.frombuffer(b"".join(blocks(StoredRows(weights, name))), "<u2")
        numbers = (raw.astype("<u4") << 16).view("<f4").reshape(header.shape)
        for part, heads in (("q", facts.num_attention_heads), ("k", facts.num_key_value_heads)):
            if f"{part}_proj" in name:
                numbers = numbers[to_neighbours(heads, facts.head_dim)]
        stored = kind if numbers.ndim == 2 else GGMLQuantizationType.F32
        writer.add_tensor(_its_name(name), quantize(numbers, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _its_name(name: str) -> str:
    outer = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
    inner = {
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        **{f"self_attn.{p}_proj": f"attn_{p}" for p in "qkv"},
        "self_attn.o_proj": "attn_output",
        **{f"mlp.{p}_proj": f"ffn_{p}" for p in ("gate", "up", "down")},
    }
    bare = name.removesuffix(".weight")
    if bare in outer:
        return f"{outer[bare]}.weight"
    _, _, index, role = bare.split(".", 3)
    return f"blk.{index}.{inner[role]}.weight"
