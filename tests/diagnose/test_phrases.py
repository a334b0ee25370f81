"""Every facet can be said, and says what differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyas.checkpoint import open_checkpoint
from eyas.diagnose.bench import Bench
from eyas.diagnose.change import with_facts
from eyas.diagnose.facets import CONDITIONING, EPS, FACETS, RESIDUAL
from eyas.diagnose.phrases import phrase
from eyas.diagnose.reading import declared


@pytest.mark.parametrize("facet", FACETS)
def test_every_facet_can_be_said(bench: Bench, trained_here: Path, facet: str) -> None:
    variant = declared(open_checkpoint(trained_here), bench.target).variant
    said = phrase(facet, variant, bench.target.facts.num_layers)
    assert said
    assert "Fact(" not in said


def test_what_differs_is_in_the_words(bench: Bench, trained_here: Path) -> None:
    variant = declared(open_checkpoint(trained_here), bench.target).variant
    assert phrase(CONDITIONING, variant, 30) == "3 states through fc"
    assert phrase(RESIDUAL, variant, 30) == "norm_before_residual false"
    assert phrase(EPS, with_facts(variant, rms_norm_eps=0.5), 30) == "rms_norm_eps 0.5"
