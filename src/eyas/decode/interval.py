"""Intervals of tau by resampling prompts: rounds of one answer are not independent, prompts are.

Efron, "Bootstrap methods: another look at the jackknife" (1979), percentile intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from eyas.decode.acceptance import Acceptance, macro_mean, tau_of

RESAMPLES = 2000
LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Where the value lies with probability `LEVEL`."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value and its interval, None where fewer than two prompts leave nothing to resample."""

    value: float
    interval: Interval | None


def tau_by_category(
    records: Mapping[str, Sequence[Acceptance]], *, seed: int
) -> tuple[dict[str, Estimate], Estimate | None]:
    """tau of each category over its prompts' records, and their macro mean.

    Each record holds a round and each category a record (`informative`); the macro mean is None
    where there is no category. A category's draws depend on its name and `seed` alone.
    """
    estimates: dict[str, Estimate] = {}
    draws: list[NDArray[np.float64]] = []
    for category, found in records.items():
        counts = np.array([(r.accepted, r.rounds) for r in found], dtype=np.float64)
        drawn = _resampled(counts, [seed, crc32(category.encode())])
        draws.append(drawn)
        estimates[category] = Estimate(value=tau_of(found), interval=_interval(drawn, len(counts)))
    if not estimates:
        return {}, None
    macro = macro_mean(estimate.value for estimate in estimates.values())
    known = all(estimate.interval is not None for estimate in estimates.values())
    drawn = np.mean(draws, axis=0)
    return estimates, Estimate(value=macro, interval=_interval(drawn, 2 if known else 1))


def _resampled(counts: NDArray[np.float64], seed: list[int]) -> NDArray[np.float64]:
    """tau of `RESAMPLES` sets of as many prompts, drawn with replacement."""
    prompts = len(counts)
    chosen = np.random.default_rng(seed).integers(prompts, size=(RESAMPLES, prompts))
    accepted, rounds = np.moveaxis(counts[chosen].sum(axis=1), -1, 0)
    taus: NDArray[np.float64] = 1 + accepted / rounds
    return taus


def _interval(drawn: NDArray[np.float64], prompts: int) -> Interval | None:
    if prompts < 2:
        return None
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(low=float(low), high=float(high))
