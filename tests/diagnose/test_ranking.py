"""What explains a refusal takes its place, and no cause is listed twice."""

from __future__ import annotations

from dataclasses import replace

from tests.diagnose.made_up import cause

from eyas.diagnose.causes import Cause, CauseId
from eyas.diagnose.ranking import ranked, with_refusal

REFUSAL = "the map names token 49172 of a vocabulary of 49152"


def refused() -> Cause:
    return replace(cause(CauseId.REFUSED, 30.0), evidence=(REFUSAL,))


def test_what_explains_a_refusal_takes_its_place() -> None:
    lost = cause(CauseId.LAYER_LOST, 0.8)
    found = ranked(with_refusal([refused(), cause(CauseId.MAP_ABSOLUTE, 31.0), lost]))
    assert [each.id for each in found] == [CauseId.MAP_ABSOLUTE, CauseId.LAYER_LOST]
    assert REFUSAL in found[0].evidence


def test_a_refusal_that_nothing_explains_stays_first() -> None:
    found = ranked(with_refusal([cause(CauseId.LAYER_LOST, 0.8), refused()]))
    assert [each.id for each in found] == [CauseId.REFUSED, CauseId.LAYER_LOST]


def test_one_cause_found_twice_is_one_with_all_that_speaks_for_it() -> None:
    twice = [cause(CauseId.ROPE, 0.1, "first"), cause(CauseId.ROPE, 0.2, "second")]
    (found,) = ranked(twice)
    assert found.score == 0.2
    assert found.evidence[0] == "second"
    assert "first" in found.evidence
