"""Weights that are stored as small numbers without what scales them."""

from __future__ import annotations

from eyas.checks.view import Trained

FLOATS = ("BF16", "F16", "F32", "F64")
MAPS = ("d2t", "t2d")


def unscaled(trained: Trained) -> list[str]:
    """The tensors that the drafter multiplies with and that are no plain floats.

    Empty where the config has a quantization_config: it says how they are to be scaled.
    """
    checkpoint = trained.checkpoint
    if checkpoint.config.get("quantization_config") is not None:
        return []
    return [
        name
        for name, header in checkpoint.tensors.items()
        if name in trained.roles and trained.roles[name] not in MAPS and header.dtype not in FLOATS
    ]
