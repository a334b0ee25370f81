"""The engines that eyas has a contract for. Adding one is adding its package to this list."""

from __future__ import annotations

from eyas.checkpoint import Checkpoint, Format
from eyas.engines.engine import Engine
from eyas.engines.llamacpp import LLAMACPP
from eyas.engines.sglang import SGLANG
from eyas.engines.vllm import VLLM

ENGINES: tuple[Engine, ...] = (SGLANG, VLLM, LLAMACPP)


def engines_for(checkpoint: Checkpoint) -> tuple[Engine, ...]:
    """The engines that take the format of `checkpoint`."""
    is_gguf = checkpoint.format is Format.GGUF
    return tuple(engine for engine in ENGINES if engine.reads_gguf is is_gguf)


def engine_named(name: str) -> Engine | None:
    """The engine called `name`, or None."""
    return next((engine for engine in ENGINES if engine.name == name), None)
