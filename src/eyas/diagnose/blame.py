"""Blame: what the stages of a case found, as causes and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eyas.decode.interval import Estimate
from eyas.diagnose.ablation import Price
from eyas.diagnose.causes import CauseId, Stage
from eyas.diagnose.chains import Chains
from eyas.diagnose.contents import Content
from eyas.diagnose.ranking import speaks_of, with_refusal
from eyas.diagnose.reading import Declared
from eyas.diagnose.suspicion import SUSPECT, of_contents, of_map, of_rope, told_by_rules
from eyas.diagnose.training_told import weakness
from eyas.diagnose.trial import WEAK
from eyas.diagnose.variant import Variant

if TYPE_CHECKING:
    from eyas.diagnose.diagnosis import Case


def blame(
    case: Case,
    files: Declared,
    held: tuple[Content, ...],
    now: Chains,
    ideal: Variant,
    sound: Chains,
) -> None:
    """Adds to the causes and notes of `case`: static facts first, then what a replay proves.

    `now` is what the files' own reading drafts, `ideal` that reading repaired as far as it could
    be, which drafts as `sound`.
    """
    court = case.court
    _files(case, files, sound)
    certain = any(not content.noise for content in held)
    spoiled = bool(files.faults) or certain or any(told_by_rules(case.report))
    case.take(of_contents(held, ideal, sound, case.bench, court, spoiled=spoiled))
    prices = {p.part.difference.cause: p for p in case.prices if not p.part.engine}
    for cause, steps in case.repaired().items():
        case.causes.append(court.swept(steps, prices.get(cause), refusal=case.served.refusal))
    for price in case.prices:
        if price.part.engine:
            _difference(case, price)
    if sound.expected_tau < WEAK:
        case.take(of_map(court))
    case.causes = list(with_refusal(case.causes))
    if not case.causes:
        case.take(of_rope(files.variant, now, case.bench, court))
    weak = weakness(now, case.training)
    if not case.causes and weak and case.swept is not None and case.swept.tried:
        case.causes.append(court.cause(CauseId.WEAK_DRAFTER, Stage.TRAINED, weak, score=SUSPECT))


def _files(case: Case, files: Declared, sound: Chains) -> None:
    """What needs no replay: a refusal, an unknown class, what the files lack or contradict."""
    court, refusal = case.court, case.served.refusal
    if case.unjudged is not None and "architectures" in case.unjudged:
        case.causes.append(court.static(CauseId.ARCHITECTURE, case.unjudged, first=True))
    if refusal is not None:
        whole = Estimate(value=sound.expected_tau - 1, interval=None)
        case.causes.append(court.refused(refusal, whole))
    for fault in files.faults:
        first = speaks_of(refusal, fault.cause)
        case.causes.append(court.static(fault.cause, fault.what, first=first))


def _difference(case: Case, price: Price) -> None:
    """One part of what the engine does otherwise: a cause where it costs, else a note."""
    what = price.part.difference.what
    if price.costs or price.part.unwritten or (price.felt and case.gone):
        case.causes.append(case.court.priced(price, refusal=case.served.refusal))
    elif price.felt:
        case.notes.append(f"no acceptance is lost by it: {what}")
    else:
        case.notes.append(f"no round feels it, all else repaired: {what}")
