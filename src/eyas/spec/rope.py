"""Rotary position embedding, normalised from its three spellings in config files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """Base frequency and scaling of a rotary embedding.

    `kind` is transformers' ``rope_type`` ("default", "llama3", "yarn", "linear", "dynamic", …).
    `scaling` holds that type's own numbers by their transformers names, without type and theta.
    """

    theta: float
    kind: str
    scaling: Mapping[str, object] = field(default_factory=dict)
