"""What the tests share: the embedded target, the drafter in assets/, and the folder of records."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

if TYPE_CHECKING:
    from eyas.checkpoint import TensorBytes

ROOT = Path(__file__).resolve().parents[1]

# A deadline would assert a time, on machines that are shared.
hypothesis.settings.register_profile("eyas", deadline=None)
hypothesis.settings.load_profile("eyas")


@pytest.fixture
def measured(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Notes a measured number, to be printed at the end of the run whatever it is."""
    return lambda text: record_property("measured", text)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints what the tests measured."""
    notes = [
        f"{report.nodeid.rpartition('::')[2]}: {value}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for key, value in report.user_properties
        if key == "measured"
    ]
    if notes:
        terminalreporter.section("measured")
        for note in sorted(notes):
            terminalreporter.write_line(note)


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The embedded target's directory; made on first use."""
    from eyas.model.smollm2 import ensure_smollm2

    return ensure_smollm2()


@pytest.fixture(scope="session")
def trained_here() -> Path:
    """The drafter that was trained here, as the trainer saved it."""
    return ROOT / "assets" / "smollm2-eagle3"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded cases: beside the clone, or EYAS_SHARED; else the skip says so."""
    folder = Path(os.environ.get("EYAS_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no recorded cases at {folder}; set EYAS_SHARED to score against them")
    return folder


Maker = Callable[..., Path]


@pytest.fixture
def make_drafter(tmp_path: Path) -> Maker:
    """Writes a tiny flat drafter: ``make(name, layer="midlayer.", without=(), **config)``.

    Hidden size 8, vocabulary 32 of which 16 drafted; each tensor has bytes of its own.
    """
    from eyas.checkpoint import TensorBytes, write_checkpoint

    shapes = {
        "fc.weight": (8, 24),
        "norm.weight": (8,),
        "lm_head.weight": (16, 8),
        "LAYER.hidden_norm.weight": (8,),
        "LAYER.input_layernorm.weight": (8,),
        "LAYER.post_attention_layernorm.weight": (8,),
        "LAYER.self_attn.q_proj.weight": (8, 16),
        "LAYER.self_attn.k_proj.weight": (4, 16),
        "LAYER.self_attn.v_proj.weight": (4, 16),
        "LAYER.self_attn.o_proj.weight": (8, 8),
        "LAYER.mlp.gate_proj.weight": (12, 8),
        "LAYER.mlp.up_proj.weight": (12, 8),
        "LAYER.mlp.down_proj.weight": (8, 12),
    }
    flat: dict[str, Any] = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": 8,
        "intermediate_size": 12,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 4,
        "hidden_act": "silu",
        "vocab_size": 32,
        "draft_vocab_size": 16,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 512,
        "norm_before_residual": False,
        "attention_bias": False,
        "tie_word_embeddings": False,
    }

    def make(
        name: str = "draft",
        *,
        layer: str = "midlayer.",
        without: Collection[str] = (),
        tensors: Mapping[str, TensorBytes] | None = None,
        **config: Any,
    ) -> Path:
        named = {n.replace("LAYER.", layer): shape for n, shape in shapes.items()}
        written = {
            n: TensorBytes(dtype="BF16", shape=shape, data=bytes([i + 1, 0x3F]) * math.prod(shape))
            for i, (n, shape) in enumerate(named.items())
        }
        offsets = b"".join(i.to_bytes(8, "little") for i in range(16))  # draft id i is target id 2i
        written["d2t"] = TensorBytes(dtype="I64", shape=(16,), data=offsets)
        written["t2d"] = TensorBytes(dtype="BOOL", shape=(32,), data=b"\x01\x00" * 16)
        kept = {n: t for n, t in written.items() if n not in without}
        return write_checkpoint(tmp_path / name, {**flat, **config}, {**kept, **(tensors or {})})

    return make
