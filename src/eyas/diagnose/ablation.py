"""Ablation: what each difference costs alone, and what repairing it alone gives back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eyas.decode.interval import Estimate
from eyas.diagnose.bench import Bench
from eyas.diagnose.chains import Chains, chains
from eyas.diagnose.difference import Difference, applied
from eyas.diagnose.variant import Variant, built
from eyas.errors import EyasError


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A difference and the variant that has it: the engine's, or the files' own reading.

    `unwritten` where matrices of it hold whatever memory held before: no replay has the last word.
    """

    difference: Difference
    source: Variant
    engine: bool
    unwritten: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a part costs in accepted drafts a round, None where it cannot be run.

    `alone` on a drafter with nothing else wrong, `returned` by repairing it while all else stays.
    `felt` is whether some round accepts another number of drafts because of it.
    """

    part: Part
    alone: Estimate | None
    returned: Estimate | None
    felt: bool

    @property
    def costs(self) -> bool:
        """Whether a round feels it, and drafts are lost by it, or it cannot be run."""
        known = [price.value for price in (self.alone, self.returned) if price is not None]
        return self.felt and (not known or max(known) > 0)

    @property
    def score(self) -> float:
        """Orders the parts: what is lost alone, and what comes back."""
        return sum(price.value for price in (self.alone, self.returned) if price is not None)


def ablate(
    ideal: Variant,
    sound: Chains,
    everything: Chains | None,
    parts: Sequence[Part],
    bench: Bench,
) -> tuple[Price, ...]:
    """Every part's price between `ideal`, which drafts as `sound`, and all parts together."""
    found = []
    for part in parts:
        alone = _run(ideal, [part], bench, sound.steps)
        others = [other for other in parts if other is not part]
        if not others:
            spared: Chains | None = sound
        else:
            spared = _run(ideal, others, bench, sound.steps)
        measurable = spared is not None and everything is not None
        found.append(
            Price(
                part=part,
                alone=None if alone is None else sound.loss_to(alone),
                returned=spared.loss_to(everything) if spared and everything else None,
                felt=_felt(alone, sound) or (measurable and _felt(spared, everything)),
            )
        )
    return tuple(sorted(found, key=lambda price: -price.score))


def together(ideal: Variant, parts: Iterable[Part]) -> Variant:
    """`ideal` with all of `parts`: what the files got wrong first, then what the engine does."""
    variant = ideal
    for part in sorted(parts, key=lambda part: part.engine):
        variant = applied(variant, part.source, [part.difference])
    return variant


def _felt(one: Chains | None, other: Chains | None) -> bool:
    return one is None or other is None or one.differs_from(other)


def _run(ideal: Variant, parts: Sequence[Part], bench: Bench, steps: int) -> Chains | None:
    variant = together(ideal, parts)
    try:
        drafter = built(variant, bench.target)
        return chains(drafter, bench.evidence, steps, shift=variant.shift)
    except EyasError:
        return None
