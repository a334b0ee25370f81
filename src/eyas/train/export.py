"""A trained drafter as a directory in the speculators dialect."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from eyas.checkpoint import TensorBytes, write_checkpoint
from eyas.dialects import speculators
from eyas.model.drafter import Drafter
from eyas.train.vocabulary import DraftVocabulary

_DTYPE_NAMES = {torch.bfloat16: "BF16", torch.int64: "I64", torch.bool: "BOOL"}


def export_drafter(
    drafter: Drafter,
    vocabulary: DraftVocabulary,
    directory: Path,
    *,
    target_name: str,
    target_architecture: str,
    speculative_tokens: int,
    extra_files: Mapping[str, str],
) -> Path:
    """Write config.json and model.safetensors (bf16) as a new `directory`, all of it or nothing.

    `target_name` is what the config calls the target: a Hub id, where others are to find it (the
    spec's own name may be a path of this machine). `speculative_tokens` is how many tokens vLLM
    drafts when the directory itself is served.
    Raises CheckpointError when the directory exists or cannot be written.
    """
    tensors = dict(drafter.state_dict())
    tensors["t2d"] = vocabulary.t2d_V
    config, names = speculators.write(
        drafter.spec, set(tensors), dtype="bfloat16", speculative_tokens=speculative_tokens
    )
    config["speculators_config"]["verifier"] = {
        "name_or_path": target_name,
        "architectures": [target_architecture],
    }
    stored = {names[role]: _stored(tensor) for role, tensor in tensors.items()}
    return write_checkpoint(directory, config, stored, extra_files)


def _stored(tensor: Tensor) -> TensorBytes:
    held = tensor.detach().to("cpu")
    if held.is_floating_point():
        held = held.to(torch.bfloat16)
    raw = held.contiguous().view(torch.uint8).numpy().tobytes()
    return TensorBytes(dtype=_DTYPE_NAMES[held.dtype], shape=tuple(held.shape), data=raw)
