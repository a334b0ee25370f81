"""Rotary position embedding, normalised from its three spellings in config files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_NO_NUMBERS = ("type", "rope_type", "rope_theta")
# Older spellings of the kinds; "mrope" is the default one with sections for images.
_KINDS = {"mrope": "default", "su": "longrope"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """Base frequency and scaling of a rotary embedding.

    `kind` is transformers' ``rope_type`` ("default", "llama3", "yarn", "linear", "dynamic", …).
    `scaling` holds that type's own numbers by their transformers names, without type and theta.
    """

    theta: float
    kind: str
    scaling: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of_table(cls, theta: float, table: Mapping[str, object]) -> Rope:
        """From base `theta` and a ``rope_scaling`` or ``rope_parameters`` object, empty or not."""
        kind = str(table.get("rope_type") or table.get("type") or "default")
        return cls(
            theta=theta,
            kind=_KINDS.get(kind, kind),
            scaling={k: v for k, v in table.items() if k not in _NO_NUMBERS},
        )
