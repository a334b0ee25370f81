"""Rotary frequencies for long contexts: linear, Llama 3's and YaRN (arXiv 2309.00071).

What a missing number stands for is transformers' rule, `modeling_rope_utils.py` of 5.24.0, since
the configs that drafters carry are written for it. Everything is computed in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from eyas.errors import UnsupportedError
from eyas.spec import Rope


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledFrequencies:
    """Angles per position [width / 2], and the factor on every cosine and sine."""

    angles: Tensor
    amplitude: float


def scaled_frequencies(rope: Rope, width: int, max_positions: int | None) -> ScaledFrequencies:
    """The frequencies of a rotary embedding over `width` channels.

    `max_positions` stands in for a missing ``original_max_position_embeddings``. Raises
    UnsupportedError for another kind of scaling, or one whose numbers are missing.
    """
    if rope.theta <= 1.0:
        raise UnsupportedError(f"a drafter with a RoPE base of {rope.theta} cannot be run")
    # on the CPU by name: a module may be built without memory, on the meta device
    powers = torch.arange(0, width, 2, dtype=torch.float64, device="cpu") / width
    plain = rope.theta**-powers
    numbers = _Numbers(rope, max_positions)
    if numbers.optional("partial_rotary_factor", 1.0) != 1.0:
        raise UnsupportedError("a drafter with RoPE on a part of each head cannot be run yet")
    if rope.kind == "default":
        return ScaledFrequencies(angles=plain, amplitude=1.0)
    if rope.kind == "linear":
        return ScaledFrequencies(angles=plain / numbers.needed("factor"), amplitude=1.0)
    if rope.kind == "llama3":
        return ScaledFrequencies(angles=_llama3(plain, numbers), amplitude=1.0)
    if rope.kind == "yarn":
        return _yarn(plain, rope.theta, numbers)
    raise UnsupportedError(f"a drafter with RoPE of the kind `{rope.kind}` cannot be run yet")


def latent_score_factor(rope: Rope) -> float:
    """The factor on the scores of latent attention (MLA), which YaRN scales a second time.

    DeepSeek-V3's own code and every engine multiply by the square of the amplitude that
    ``mscale_all_dim`` gives.
    """
    numbers = _Numbers(rope, None)
    strength = numbers.optional("mscale_all_dim", 0.0)
    if rope.kind != "yarn" or not strength:
        return 1.0
    return _amplitude(numbers.needed("factor"), strength) ** 2


class _Numbers:
    """The scaling's numbers by name."""

    def __init__(self, rope: Rope, max_positions: int | None) -> None:
        self._rope = rope
        self._max_positions = max_positions

    def optional(self, name: str, default: float) -> float:
        value = self._rope.scaling.get(name)
        if value is None:
            return default
        if not isinstance(value, int | float):
            raise UnsupportedError(f"RoPE's `{name}` is {value!r} where a number is needed")
        return float(value)

    def needed(self, name: str) -> float:
        value = self.optional(name, 0.0)
        if value <= 0.0:
            raise UnsupportedError(f"RoPE of the kind `{self._rope.kind}` needs a `{name}` above 0")
        return value

    def original_positions(self) -> float:
        name = "original_max_position_embeddings"
        if self._rope.scaling.get(name) is None and self._max_positions is not None:
            return float(self._max_positions)
        return self.needed(name)


def _llama3(plain: Tensor, numbers: _Numbers) -> Tensor:
    """Slow waves are stretched by `factor`, fast ones kept, those between interpolated."""
    factor, positions = numbers.needed("factor"), numbers.original_positions()
    low, high = numbers.needed("low_freq_factor"), numbers.needed("high_freq_factor")
    turns = positions * plain / (2 * math.pi)  # within the original context
    kept = ((turns - low) / (high - low)).clamp(0.0, 1.0)
    return (1 - kept) * plain / factor + kept * plain


def _yarn(plain: Tensor, theta: float, numbers: _Numbers) -> ScaledFrequencies:
    """Like Llama 3's with a ramp over channels, and louder queries and keys."""
    factor, positions = numbers.needed("factor"), numbers.original_positions()
    half = len(plain)

    def channel(turns: float) -> float:
        """The channel whose wave turns so often within the original context."""
        return half * math.log(positions / (turns * 2 * math.pi)) / math.log(theta)

    first = channel(numbers.optional("beta_fast", 32.0) or 32.0)
    last = channel(numbers.optional("beta_slow", 1.0) or 1.0)
    if numbers.optional("truncate", 1.0):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, 2 * half - 1)
    span = last - first or 0.001
    stretched = ((torch.arange(half, dtype=torch.float64, device="cpu") - first) / span).clamp(0.0, 1.0)
    angles = stretched * plain / factor + (1 - stretched) * plain
    amplitude = numbers.optional("attention_factor", 0.0)
    mscale, all_dim = (numbers.optional(n, 0.0) for n in ("mscale", "mscale_all_dim"))
    if not amplitude and mscale and all_dim:
        amplitude = _amplitude(factor, mscale) / _amplitude(factor, all_dim)
    return ScaledFrequencies(angles=angles, amplitude=amplitude or _amplitude(factor, 1.0))


def _amplitude(factor: float, strength: float) -> float:
    return 1.0 if factor <= 1.0 else 0.1 * strength * math.log(factor) + 1.0
