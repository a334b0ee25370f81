"""A sound drafter to spoil, and the rule that every refusal keeps."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eyas import dialects
from eyas.checkpoint import TensorBytes, open_checkpoint, write_checkpoint
from eyas.errors import EyasError

CONFIG = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "hidden_size": 4,
    "intermediate_size": 4,
    "num_attention_heads": 1,
    "vocab_size": 8,
    "draft_vocab_size": 2,
}


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    """A directory that opens and reads."""
    tensors = {
        "fc.weight": TensorBytes(dtype="BF16", shape=(4, 12), data=bytes(range(96))),
        "d2t": TensorBytes(dtype="I64", shape=(2,), data=struct.pack("<2q", 0, 3)),
    }
    return write_checkpoint(tmp_path / "drafter", CONFIG, tensors)


@pytest.fixture
def refused() -> Callable[..., EyasError]:
    """Opens and reads what must not be, and returns the error: one sentence, and what to do."""

    def refuse(location: str | Path, kind: type[EyasError]) -> EyasError:
        with pytest.raises(EyasError) as caught:
            dialects.read(open_checkpoint(location))
        error = caught.value
        assert type(error) is kind, repr(error)
        assert error.message.isprintable()
        assert len(error.message) < 600
        assert not error.message.endswith(".")
        assert error.hint
        return error

    return refuse


@pytest.fixture
def raw_file() -> Callable[..., bytes]:
    """A safetensors file from any header, sound or not."""

    def make(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        stated = len(text) if length is None else length
        return stated.to_bytes(8, "little") + text + data

    return make
