"""Rotary embeddings in the keys of a GGUF file, and which of them llama.cpp computes exactly.

What llama.cpp makes of the keys (src/llama-model.cpp:1409-1432, src/llama-context.cpp:134-214 and
ggml/src/ggml-cpu/ops.cpp:6180-6218 of llama.cpp at 0c1e57098), for a class that reads no yarn key
of its own, as eagle3 does not:

- without `rope.scaling.type` scaling is linear by `factor`, and `none` scales nothing;
- ``rope_freqs.weight`` divides each channel's angle, which is how Llama 3's scaling is stored;
- yarn always ramps from 32 turns to 1, between whole channels; its amplitude is
  1 + 0.1 ln(factor), times `attn_factor`, through which any amplitude can be had.

A rope that those keys do not spell out is stated once more in a key of our own, which counts only
where the others agree with it.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eyas.checkpoint.checkpoint import Checkpoint
from eyas.checkpoint.float32 import as_float32, shortest
from eyas.checkpoint.json_file import json_object
from eyas.errors import CheckpointError, ConversionError
from eyas.spec import Rope

FACTORS = "rope_freqs.weight"
OWN = "eyas.rope_parameters"
THETA = 10000.0  # llama.cpp's where no key says (src/llama-model.cpp:1414)

_BASE, _KIND, _FACTOR = "rope.freq_base", "rope.scaling.type", "rope.scaling.factor"
_OLD_FACTOR = "rope.scale_linear"
_ORIGINAL, _AMPLITUDE = "rope.scaling.original_context_length", "rope.scaling.attn_factor"
_POSITIONS = "original_max_position_embeddings"
_NUMBERS = {
    "default": {"partial_rotary_factor"},
    "linear": {"partial_rotary_factor", "factor"},
    "llama3": {
        "partial_rotary_factor",
        "factor",
        "low_freq_factor",
        "high_freq_factor",
        _POSITIONS,
    },
    "yarn": {"partial_rotary_factor", "factor", _POSITIONS, "beta_fast", "beta_slow", "truncate"}
    | {"mscale", "mscale_all_dim", "attention_factor"},
}
_MOST = 1e9  # positions, or what else a rope is scaled by
_WIDEST = 4096  # channels of a head; those in use have 256 at most
_CLOSE = 1e-6  # float32 holds factors to 6e-8, and llama.cpp's converter computes them in it


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRope:
    """What a file says of a rope: keys below the architecture's name, and ``rope_freqs.weight``.

    `factors` has one number for each pair of channels, None where the file has no such tensor.
    """

    keys: Mapping[str, float | int | str]
    factors: tuple[float, ...] | None


def stored_rope(rope: Rope, *, head_dim: int, max_positions: int) -> StoredRope:
    """The keys and factors with which llama.cpp computes `rope` over `head_dim` channels.

    `max_positions` stands in for a missing ``original_max_position_embeddings``. Raises
    ConversionError for a rope that llama.cpp's eagle3 does not compute.
    """
    if rope.kind not in _NUMBERS:
        raise _inexpressible(f"the kind `{rope.kind}`")
    numbers = _Numbers(rope)
    if rope.theta <= 1.0 or as_float32(rope.theta) is None:
        raise _inexpressible(f"the base {rope.theta:g}")
    if numbers.get("partial_rotary_factor", 1.0) != 1.0:
        raise _inexpressible("a part of each head")
    base: dict[str, float | int | str] = {_BASE: rope.theta}
    if rope.kind == "default":
        return StoredRope(keys=base, factors=None)
    factor = numbers.needed("factor")
    if rope.kind == "linear":
        return StoredRope(keys=base | {_KIND: "linear", _FACTOR: factor}, factors=None)
    positions = numbers.get(_POSITIONS, float(max_positions))
    if rope.kind == "llama3":
        return StoredRope(keys=base, factors=_llama3(numbers, positions, head_dim))
    _require_yarn(numbers, positions, head_dim)
    keys = base | {_KIND: "yarn", _FACTOR: factor, _ORIGINAL: int(positions)}
    amplitude = _yarn_amplitude(numbers) / _louder(factor, 1.0)
    if not math.isclose(amplitude, 1.0, rel_tol=1e-9):
        keys[_AMPLITUDE] = amplitude
    return StoredRope(keys=keys, factors=None)


def own_keys(rope: Rope, stored: StoredRope) -> dict[str, str]:
    """The key of our own that a file with `stored` needs, so that reading it gives `rope` back."""
    keys = {k: shortest(v) if isinstance(v, float) else v for k, v in stored.keys.items()}
    if _plain(keys, has_factors=stored.factors is not None) == rope:
        return {}
    table = {"rope_theta": rope.theta, "rope_type": rope.kind, **rope.scaling}
    return {OWN: json.dumps(table, allow_nan=False)}


def read_rope(
    checkpoint: Checkpoint, prefix: str, *, head_dim: int, max_positions: int | None
) -> Rope:
    """The rope of a file whose keys begin with `prefix` (``eagle3.``).

    Raises CheckpointError for a key of another type, and for a key of our own that is unsound.
    """
    keys = {key: value for key in _TYPES if (value := _value(checkpoint, prefix, key)) is not None}
    plain = _plain(keys, has_factors=FACTORS in checkpoint.tensors)
    stated = _stated(checkpoint)
    if stated is None or max_positions is None:
        return plain
    try:
        stored = stored_rope(stated, head_dim=min(head_dim, _WIDEST), max_positions=max_positions)
    except ConversionError:
        return plain
    agree = _same_keys(stored.keys, keys) and _same_factors(stored.factors, checkpoint)
    return stated if agree else plain


def _plain(keys: Mapping[str, Any], *, has_factors: bool) -> Rope:
    """What the keys say by themselves; the factors of llama3's scaling stay a tensor."""
    kind, theta = keys.get(_KIND), float(keys.get(_BASE, THETA))
    factor = keys.get(_FACTOR, keys.get(_OLD_FACTOR))
    scaling: dict[str, object] = {}
    if factor and kind != "none":
        scaling["factor"] = factor
    if kind == "yarn":
        if _ORIGINAL in keys:
            scaling[_POSITIONS] = keys[_ORIGINAL]
        if factor and _AMPLITUDE in keys:
            scaling["attention_factor"] = keys[_AMPLITUDE] * _louder(factor, 1.0)
    elif has_factors:
        return Rope(theta=theta, kind="llama3", scaling=scaling | {"factors": FACTORS})
    if kind in (None, "none"):
        kind = "linear" if scaling else "default"
    return Rope(theta=theta, kind=kind, scaling=scaling)


def _stated(checkpoint: Checkpoint) -> Rope | None:
    text = checkpoint.config.get(OWN)
    if text is None:
        return None
    place = f"{checkpoint.config_file} :: {OWN}"
    if not isinstance(text, str):
        raise CheckpointError(f"{place} is no text", hint="convert the drafter again")
    table = json_object(text.encode(), where=place, hint="convert the drafter again")
    theta = table.get("rope_theta")
    if isinstance(theta, bool) or not isinstance(theta, int | float):
        raise CheckpointError(f"{place} has no rope_theta", hint="convert the drafter again")
    return Rope.of_table(float(theta), table)


def _same_keys(stored: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    return stored.keys() == found.keys() and all(
        found[key] == value
        if isinstance(value, str)
        else as_float32(found[key]) == as_float32(value)
        for key, value in stored.items()
    )


def _same_factors(stored: tuple[float, ...] | None, checkpoint: Checkpoint) -> bool:
    header = checkpoint.tensors.get(FACTORS)
    if stored is None or header is None:
        return stored is None and header is None
    shaped = header.dtype == "F32" and header.shape == (len(stored),)
    if not shaped or not checkpoint.has_bytes(FACTORS):
        return False
    found = struct.unpack(f"<{len(stored)}f", checkpoint.read_bytes(FACTORS))
    pairs = zip(stored, found, strict=True)
    return all(math.isclose(ours, theirs, rel_tol=_CLOSE) for ours, theirs in pairs)


def _llama3(numbers: _Numbers, positions: float, head_dim: int) -> tuple[float, ...]:
    """What each pair's angle is divided by (conversion/llama.py:299-327 of llama.cpp).

    Computed in float64, where that converter computes in float32.
    """
    factor = numbers.needed("factor")
    low, high = numbers.needed("low_freq_factor"), numbers.needed("high_freq_factor")
    if high <= low or positions <= 0:
        raise _inexpressible("the kind `llama3` whose high_freq_factor is not above the low one")
    factors = []
    for pair in range(head_dim // 2):
        angle = numbers.rope.theta ** (-2 * pair / head_dim)
        turns = positions * angle / (2 * math.pi)
        kept = min(1.0, max(0.0, (turns - low) / (high - low)))
        factors.append(1.0 / ((1.0 - kept) / factor + kept))
    return tuple(factors)


def _require_yarn(numbers: _Numbers, positions: float, head_dim: int) -> None:
    """Raises ConversionError where llama.cpp's ramp is not that of `numbers`."""
    fast, slow = numbers.get("beta_fast", 32.0) or 32.0, numbers.get("beta_slow", 1.0) or 1.0
    if (fast, slow) != (32.0, 1.0):
        raise _inexpressible(f"yarn with beta_fast {fast:g} and beta_slow {slow:g}, but 32 and 1")
    if not numbers.get("truncate", 1.0):
        raise _inexpressible("yarn whose ramp ends between two channels")
    if numbers.needed("factor") < 1.0 or positions < 1.0 or positions % 1:
        raise _inexpressible(f"yarn by a factor below 1, or from {positions:g} positions")

    def channel(turns: float) -> float:
        return head_dim * math.log(positions / (turns * 2 * math.pi)) / (2 * math.log(theta))

    theta = numbers.rope.theta
    first, last = channel(fast), channel(slow)
    # llama.cpp rounds in float32, and may round otherwise where a ramp ends on a channel.
    if any(math.floor(end - 1e-4) != math.floor(end + 1e-4) for end in (first, last)):
        raise _inexpressible("yarn whose ramp ends within float32's error of a channel")
    if min(math.ceil(last), head_dim - 1) < max(math.floor(first), 0):
        raise _inexpressible(f"yarn from {positions:g} positions, less than one turn of a wave")


def _yarn_amplitude(numbers: _Numbers) -> float:
    """The factor on cosines and sines (transformers 5.24.0, modeling_rope_utils.py)."""
    factor, stated = numbers.needed("factor"), numbers.get("attention_factor", 0.0)
    scale, all_dim = numbers.get("mscale", 0.0), numbers.get("mscale_all_dim", 0.0)
    if not stated and scale and all_dim:
        stated = _louder(factor, scale) / _louder(factor, all_dim)
    return stated or _louder(factor, 1.0)


def _louder(factor: float, strength: float) -> float:
    return 1.0 if factor <= 1.0 else 0.1 * strength * math.log(factor) + 1.0


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers of a rope's scaling, of which llama.cpp must know every one."""

    rope: Rope

    def __post_init__(self) -> None:
        strange = sorted(self.rope.scaling.keys() - _NUMBERS[self.rope.kind])
        if strange:
            raise _inexpressible(f"the kind `{self.rope.kind}` with `{strange[0]}`")

    def get(self, name: str, default: float) -> float:
        value = self.rope.scaling.get(name)
        if value is None:
            return default
        if not isinstance(value, int | float) or not 0.0 <= value < _MOST:
            raise _inexpressible(f"`{name}` {value!r:.40}")
        return float(value)

    def needed(self, name: str) -> float:
        value = self.get(name, 0.0)
        if value < 1.0 / _MOST:
            raise _inexpressible(f"the kind `{self.rope.kind}` without a `{name}` above 0")
        return value


def _inexpressible(what: str) -> ConversionError:
    return ConversionError(
        f"llama.cpp's eagle3 computes no RoPE of {what}",
        hint="serve the drafter on an engine that reads its config: --to vllm or --to sglang",
    )


def _value(checkpoint: Checkpoint, prefix: str, key: str) -> Any:
    value = checkpoint.config.get(prefix + key)
    if value is None or _TYPES[key](value):
        return value
    place = f"{checkpoint.config_file} :: {prefix}{key}"
    raise CheckpointError(f"{place} is {value!r:.60}, which it cannot be", hint="correct the file")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_TYPES: Mapping[str, Callable[[object], bool]] = {
    _BASE: _is_number,
    _KIND: _is_text,
    _FACTOR: _is_number,
    _OLD_FACTOR: _is_number,
    _ORIGINAL: _is_number,
    _AMPLITUDE: _is_number,
}
