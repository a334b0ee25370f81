"""What a server showed, as it is typed: tau, rates and speeds, each refused where it cannot be."""

from __future__ import annotations

from itertools import pairwise
from math import isfinite

from eyas.errors import UsageError

_ROUNDING = 1e-6  # by which a rate may exceed the one before it


def chosen_tau(tau: float | None, rates: str | None, steps: int) -> float | None:
    """The observed `tau` of chains of `steps`; raises UsageError where none can have it."""
    if tau is None:
        return None
    if rates is not None:
        raise UsageError("--observed and --observed-rates say the same", hint="give one of them")
    if not 1 <= tau <= steps + 1:
        raise UsageError(
            f"an observed tau of {tau:g} cannot be: rounds of {steps} drafts give 1 to {steps + 1}",
            hint="count the bonus token, and set --steps to the server's draft tokens",
        )
    return tau


def shares_of(rates: str | None, steps: int) -> tuple[float, ...] | None:
    """The shares of rounds that accepted at least 1, 2, … drafts; raises UsageError."""
    if rates is None:
        return None
    found = _numbers(rates, "--observed-rates", "0.47,0.22,0.09")
    if not all(0 <= rate <= 1 for rate in found):
        raise UsageError(f"{rates!r} are no shares", hint="write 0.47 for 47 %")
    if any(later > earlier + _ROUNDING for earlier, later in pairwise(found)):
        raise UsageError(
            f"{rates!r} rise: of the rounds that accept 1, 2, … drafts the later are the fewer",
            hint="give shares of all rounds, not of those that reached the position",
        )
    if len(found) > steps:
        raise UsageError(
            f"{rates!r} are {len(found)} rates, and a round has {steps} drafts",
            hint=f"--steps {len(found)}",
        )
    return found


def speeds_of(speed: str | None) -> tuple[float, float] | None:
    """Tokens a second with speculation and without; raises UsageError."""
    if speed is None:
        return None
    found = _numbers(speed, "--speed", "25,90")
    if len(found) != 2 or min(found) <= 0:
        raise UsageError(
            f"--speed {speed} is not two rates above 0", hint="write --speed WITH,WITHOUT as 25,90"
        )
    return found[0], found[1]


def _numbers(text: str, option: str, example: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(map(isfinite, found)):
        raise UsageError(f"{option} {text!r} is no list of numbers", hint=f"write {example}")
    return found
