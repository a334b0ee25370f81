"""Answers that repeat themselves to the end: small models do, and a loop teaches nothing."""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_PERIOD = 48
SHORTEST_LOOP = 24
REPEATS = 3


def looped_from(ids: Sequence[int]) -> int | None:
    """Where the tail starts to repeat for the third time, or None when it does not loop.

    Slicing with the result, `ids[:looped_from(ids)]`, keeps two rounds of a loop.
    """
    for period in range(1, min(LONGEST_PERIOD, len(ids) // REPEATS) + 1):
        begin = len(ids) - period
        while begin > 0 and ids[begin - 1] == ids[begin - 1 + period]:
            begin -= 1
        looped = len(ids) - begin
        if looped >= max(REPEATS * period, SHORTEST_LOOP):
            return begin + max(2 * period, SHORTEST_LOOP // 2)
    return None
