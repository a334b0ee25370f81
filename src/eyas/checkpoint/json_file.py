"""Strict JSON: an object of finite numbers and unique keys, in UTF-8, of a bounded size."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from eyas.checkpoint.regular import read_regular
from eyas.errors import CheckpointError

_MOST_DIGITS = 300
MAX_BYTES = 16 * 2**20  # the largest real config is some 100 KB, an index some MB


def read_json_object(path: Path, *, hint: str, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """The JSON object in `path`; raises CheckpointError for anything else."""
    return json_object(read_regular(path, max_bytes=max_bytes), where=str(path), hint=hint)


def json_object(raw: bytes, *, where: str, hint: str) -> dict[str, Any]:
    """The JSON object that `raw`, read at `where`, spells; raises CheckpointError otherwise."""
    try:
        value = json.loads(
            raw.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
            object_pairs_hook=_unique,
        )
    except UnicodeDecodeError as error:
        raise CheckpointError(
            f"{where} is not UTF-8 text (byte {error.start})", hint=hint
        ) from None
    except RecursionError:
        raise CheckpointError(f"{where} nests JSON too deeply to be read", hint=hint) from None
    except ValueError as error:
        raise CheckpointError(f"{where} is not valid JSON: {error}", hint=hint) from None
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise CheckpointError(f"{where} holds a JSON {kind} instead of an object", hint=hint)
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large for a number")
    return number


def _whole(text: str) -> int:
    # What no float can hold ends a computation that needs one, and prints as a page of digits.
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"{text[:40]}… is too large for a number")
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Readers disagree on which of two equal keys wins, so neither can be trusted.
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(
            name for name, count in Counter(name for name, _ in pairs).items() if count > 1
        )
        raise ValueError(f"the key {twice[:80]!r} occurs twice")
    return found
