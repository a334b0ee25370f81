"""Which modules a quantization_config leaves as plain floats, in the spellings of its kinds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

# compressed-tensors, transformers' fp8 and awq, vLLM's own, ModelOpt.
_KEYS = ("ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules")


def left_plain(table: Mapping[str, Any], module: str) -> bool:
    """Whether the quantization_config `table` leaves `module` (``layers.0.mlp.up_proj``) alone."""
    patterns = [p for key in _KEYS for p in table.get(key) or () if isinstance(p, str)]
    return any(_matches(pattern, module) for pattern in patterns)


def _matches(pattern: str, module: str) -> bool:
    if pattern.startswith("re:"):
        try:
            return re.match(pattern.removeprefix("re:"), module) is not None
        except re.error:
            return False
    inside = f".{module}."
    return fnmatchcase(module, pattern) or f".{pattern}." in inside
