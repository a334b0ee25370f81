"""The waterfall: from the tau as trained down to the tau as served, difference by difference.

An ablation knows what each difference costs alone and what repairing it alone gives back. Two that
each silence a drafter do not cost twice what there is to lose: so each falls by its price alone as
far as there is tau left above what is served, the dearest first. With two differences that is what
was measured. What prices alone do not explain falls in the last step, in company.
"""

from __future__ import annotations

from dataclasses import dataclass

from eyas.diagnose.outcome import Diagnosis, Measure, Priced

WIDEST = 70.0  # per cent of the drawing's width between a tau of 1 and the highest
_SEEN = 0.005  # of a tau: less is not drawn as a step
COMPANY = "all of them together"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A bar from tau `low` to `high`: a `level` from 1 on, or a `fall` (or `rise`) between two.

    `left` and `width` are in per cent of the drawing's width; `label` and `text` say what it is.
    """

    kind: str
    label: str
    text: str
    left: float
    width: float


def waterfall(found: Diagnosis) -> tuple[Step, ...]:
    """The steps of `found`; none where either end, or every price, is unknown."""
    top = found.repaired or found.trained
    end = _end(found)
    priced = [price for price in found.priced if price.alone is not None and price.felt]
    if top is None or end is None or not priced:
        return ()
    priced.sort(key=_dearest)
    high, low = top.expected.value, end.expected.value
    rail = _Rail(scale=WIDEST / max(high - 1, low - 1, _SEEN))
    steps = [rail.level(top.label, high)]
    now = high
    for price in priced:
        assert price.alone is not None  # chosen above
        after = max(now - price.alone.value, min(low, now))
        steps.append(rail.between(price.cause, now, after))
        now = after
    if abs(now - low) >= _SEEN:
        steps.append(rail.between(COMPANY, now, low))
    served = f"as served by {found.engine}" if found.served else end.label
    return (*steps, rail.level(served, low))


def _change(tau: float) -> str:
    return "nothing left to lose" if abs(tau) < _SEEN else f"{tau:+.2f}".replace("-", "−")


def _dearest(price: Priced) -> float:
    assert price.alone is not None  # what has no price is not sorted
    return -price.alone.value


def _end(found: Diagnosis) -> Measure | None:
    """What is served; without an engine, what the files make of a drafter that was repaired."""
    if found.served:
        return found.served[0]
    return found.trained if found.repaired is not None and found.engine is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rail:
    """Where a tau lies, in per cent of the drawing's width."""

    scale: float

    def level(self, label: str, tau: float) -> Step:
        return Step(
            kind="level",
            label=label,
            text=f"{tau:.2f}",
            left=0.0,
            width=max((tau - 1) * self.scale, 0.0),
        )

    def between(self, label: str, before: float, after: float) -> Step:
        low, high = min(before, after), max(before, after)
        return Step(
            kind="fall" if after <= before else "rise",
            label=label,
            text=_change(after - before),
            left=(low - 1) * self.scale,
            width=(high - low) * self.scale,
        )
