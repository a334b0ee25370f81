"""How a statement about SGLang is written down."""

from __future__ import annotations

from eyas.spec import Claim


def claim(text: str, file: str, lines: str, version: str = "0.5.23") -> Claim:
    """A statement about SGLang, as it was read in `version`."""
    return Claim(text=text, project="sglang", version=version, file=file, lines=lines)
