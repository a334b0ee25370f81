"""What outcomes hold for: another drafter's, another eyas's, another setting's are not taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import eyas
from eyas.checkpoint import TensorBytes, open_checkpoint
from eyas.decode.outcomes import fingerprint, settings_of

Make = Callable[..., Path]


def test_a_fingerprint_sees_the_config_and_every_byte(make_drafter: Make) -> None:
    weight = TensorBytes(dtype="BF16", shape=(8, 24), data=b"\x01\x3f" * (8 * 24))
    nudged = TensorBytes(dtype="BF16", shape=(8, 24), data=b"\x01\x3f" * (8 * 24 - 1) + b"\x02\x3f")
    drafters = [
        make_drafter("one", tensors={"fc.weight": weight}),
        make_drafter("config", tensors={"fc.weight": weight}, norm_before_residual=True),
        make_drafter("matrix", tensors={"fc.weight": nudged}),
        make_drafter("names", tensors={"fc.weight": weight}, layer="layers.0."),
    ]
    again = make_drafter("again", tensors={"fc.weight": weight})
    found = [fingerprint(open_checkpoint(drafter)) for drafter in drafters]
    assert len(set(found)) == len(drafters)
    assert fingerprint(open_checkpoint(again)) == found[0]


def test_settings_name_the_version_that_computes(
    make_drafter: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = open_checkpoint(make_drafter())
    now = settings_of(checkpoint, steps=3)
    assert now == {"eyas": eyas.__version__, "drafter": fingerprint(checkpoint), "steps": 3}
    monkeypatch.setattr(eyas, "__version__", "another")
    assert settings_of(checkpoint, steps=3) != now
