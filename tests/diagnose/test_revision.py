"""A step that was taken too early is taken back once the others are there.

The readings are made up: two switches of a real drafter's spec, and a closeness for each of the
four combinations. What real drafters do is scored by `benchmarks/score_diagnose.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eyas.checkpoint import open_checkpoint
from eyas.diagnose import revision, trial
from eyas.diagnose.bench import Bench
from eyas.diagnose.causes import CauseId
from eyas.diagnose.chains import Chains
from eyas.diagnose.change import Change, with_facts
from eyas.diagnose.facets import EPS, FEEDBACK, RESIDUAL
from eyas.diagnose.reading import declared
from eyas.diagnose.trial import Step, Trial
from eyas.diagnose.variant import Variant
from eyas.spec import Feedback

# closeness by (residual changed, eps changed, feedback changed)
NEAR = {
    (False, False, False): 0.50,
    (True, False, False): 0.60,  # makes up for the norms, and looks best at first
    (False, False, True): 0.45,  # the right one, which looks like a loss
    (True, True, False): 0.80,
    (False, True, True): 0.90,
    (False, True, False): 0.70,
}


def chains_of(near: float) -> Chains:
    accepted = tuple(np.full(10, 1 if near > 0.75 else 0) for _ in range(8))
    return Chains(steps=1, accepted=accepted, closeness=np.full((8, 1), near))


@pytest.fixture
def start(bench: Bench, trained_here: Path) -> Variant:
    return declared(open_checkpoint(trained_here), bench.target).variant


def changes(start: Variant) -> dict[str, Change]:
    spec = start.spec
    flipped = not spec.norm_before_residual.value
    made = {
        RESIDUAL: (CauseId.RESIDUAL, with_facts(start, norm_before_residual=flipped)),
        EPS: (CauseId.NORMS, with_facts(start, rms_norm_eps=0.5)),
        FEEDBACK: (CauseId.FEEDBACK, with_facts(start, feedback=Feedback.POST_NORM)),
    }
    return {
        facet: Change(cause=cause, what=facet, variant=variant, facets=frozenset({facet}))
        for facet, (cause, variant) in made.items()
    }


def test_the_pair_that_ends_nearest_is_kept(
    bench: Bench, start: Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = start.spec

    def read_as(variant: Variant, *_: object) -> Chains:
        key = (
            variant.spec.norm_before_residual.value != spec.norm_before_residual.value,
            variant.spec.rms_norm_eps.value != spec.rms_norm_eps.value,
            variant.spec.feedback.value is not spec.feedback.value,
        )
        return chains_of(NEAR[key])

    monkeypatch.setattr(revision, "read_as", read_as)
    monkeypatch.setattr(trial, "read_as", read_as)
    of = changes(start)

    def tried(facet: str, near: float, before: float) -> Trial:
        seen = chains_of(near)
        return Trial(change=of[facet], chains=seen, gain=seen.gain_over(chains_of(before)))

    first = Step(
        before=chains_of(0.5), trials=(tried(RESIDUAL, 0.6, 0.5), tried(FEEDBACK, 0.45, 0.5))
    )
    second = Step(before=chains_of(0.6), trials=(tried(EPS, 0.8, 0.6),))
    found = revision.revised([first, second], start, bench, 1)
    assert [step.taken.change.what for step in found] == [FEEDBACK, EPS]
    assert found[-1].taken.chains.nearness == pytest.approx(0.9)
    assert found[-1].taken.change.variant.spec.norm_before_residual == spec.norm_before_residual
    alone = revision.revised([first], start, bench, 1)
    assert [step.taken.change.what for step in alone] == [RESIDUAL]


def test_the_last_steps_that_give_nothing_back_tell_nothing(start: Variant) -> None:
    of = changes(start)

    def step(facet: str, before: float, after: float) -> Step:
        seen = chains_of(after)
        gain = seen.gain_over(chains_of(before))
        return Step(
            before=chains_of(before), trials=(Trial(change=of[facet], chains=seen, gain=gain),)
        )

    assert step(RESIDUAL, 0.5, 0.8).tells
    assert not step(RESIDUAL, 0.5, 0.7).tells
    assert not step(RESIDUAL, 0.8, 0.9).tells


def test_what_is_taken_back_later_was_never_taken(
    bench: Bench, start: Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The residual is changed, then the norms are, then the residual is as it was."""
    of = changes(start)
    back = Change(cause=CauseId.RESIDUAL, what="back", variant=start, facets=frozenset({RESIDUAL}))

    def read_as(variant: Variant, *_: object) -> Chains:
        same = variant.spec.norm_before_residual.value == start.spec.norm_before_residual.value
        normed = variant.spec.rms_norm_eps.value != start.spec.rms_norm_eps.value
        return chains_of(
            {(True, False): 0.5, (False, False): 0.6, (False, True): 0.8}.get((same, normed), 0.95)
        )

    monkeypatch.setattr(revision, "read_as", read_as)
    monkeypatch.setattr(trial, "read_as", read_as)
    found = []
    for change, before, after in (
        (of[RESIDUAL], 0.5, 0.6),
        (of[EPS], 0.6, 0.8),
        (back, 0.8, 0.95),
    ):
        seen = chains_of(after)
        gain = seen.gain_over(chains_of(before))
        tried = Trial(change=change, chains=seen, gain=gain)
        found.append(Step(before=chains_of(before), trials=(tried,)))
    kept = revision.revised(found, start, bench, 1)
    assert [step.taken.change.what for step in kept] == [EPS]
    assert kept[0].taken.chains.nearness == pytest.approx(0.95)
