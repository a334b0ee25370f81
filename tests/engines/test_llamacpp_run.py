"""The drafter that was trained here, written as GGUF and drafting inside llama.cpp itself."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyas import dialects
from eyas.checkpoint import open_checkpoint, open_target
from eyas.checkpoint.gguf_tokenizer import tokenizer_keys
from eyas.checkpoint.gguf_write import write_gguf
from eyas.checkpoint.rows import Rows, StoredRows, blocks, tensor_bytes
from eyas.dialects import gguf
from eyas.dialects.gguf_rows import stored
from eyas.dialects.rope_rows import to_neighbours
from eyas.spec import Eagle3Spec

ROOT = Path(__file__).resolve().parents[2]
TOKENS = 48
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp has no wheel for this machine"
)


@pytest.fixture(scope="module")
def target(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded target as llama.cpp's converter would write it, in Q8_0."""
    from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter
    from gguf.quants import quantize

    path = tmp_path_factory.mktemp("target") / "target.gguf"
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
        kind = GGMLQuantizationType.Q8_0 if numbers.ndim == 2 else GGMLQuantizationType.F32
        writer.add_tensor(its_name(name), quantize(numbers, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def its_name(name: str) -> str:
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


def written(path: Path, trained_here: Path, target: Path, fault: str | None = None) -> Path:
    """The drafter as GGUF; `fault` leaves one thing in the order that it was trained in."""
    checkpoint = open_checkpoint(trained_here)
    dialect, spec = dialects.read(checkpoint)
    assert isinstance(spec, Eagle3Spec)
    roles: Mapping[str, str] = dialect.roles(checkpoint)
    keys, names = gguf.write(spec, tuple(roles.values()), dtype="bfloat16")
    tensors = {}
    for name, role in roles.items():
        if role in names:
            raw = StoredRows(checkpoint, name)
            left = fault is not None and fault in role
            rows: Rows = raw if left else stored(spec, role, raw)
            tensors[names[role]] = tensor_bytes(rows)
    write_gguf(path, keys | tokenizer_keys(open_target(target), spec.vocab_size.value), tensors)
    return path


def run(target: Path, draft: Path, prompts: Path) -> dict[str, Any]:
    script = Path(__file__).with_name("llamacpp_server.py")
    command = [sys.executable, script, target, draft, prompts, str(TOKENS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_llamacpp_accepts_what_was_written_and_not_what_is_left_unturned(
    target: Path, trained_here: Path, tmp_path: Path, measured: Any
) -> None:
    lines = (ROOT / "src/eyas/data/own_prompts.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["messages"][0]["content"] for line in lines[::4]]
    prompts = tmp_path / "prompts.json"
    prompts.write_text(json.dumps(texts), encoding="utf-8")

    taus, answers = {}, {}
    for fault in (None, "q_proj", "d2t"):
        draft = written(tmp_path / f"{fault}.gguf", trained_here, target, fault)
        counted = run(target, draft, prompts)
        taus[fault] = 1 + counted["accepted"] / counted["rounds"]
        answers[fault] = counted["answers"]
        measured(f"tau in llama.cpp, left as trained: {fault}: {taus[fault]:.3f}")

    assert taus[None] > 1.65
    assert taus["q_proj"] < taus[None] - 0.1
    assert taus["d2t"] < 1.05
    assert sum(a == b for a, b in zip(answers[None], answers["d2t"], strict=True)) >= 4
