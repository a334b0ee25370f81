"""Acceptance by draft position, as bars and as a picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyas.checks.render.style import PLAIN, Style
from eyas.decode import picture
from eyas.decode.acceptance import Acceptance
from eyas.decode.curve import BAR, TITLE, Curve, bars
from eyas.errors import UsageError

SOUND = Curve.of("as trained", [Acceptance(steps=2, rounds=4, accepted_at=(2, 1))])
RUINED = Curve.of(
    "its layer lost",
    [
        Acceptance(steps=2, rounds=4, accepted_at=(0, 0)),
        Acceptance(steps=2, rounds=4, accepted_at=(1, 0)),
    ],
)


def test_a_curve_is_a_range_over_its_records() -> None:
    assert (RUINED.low, RUINED.high) == ((0.0, 0.0), (0.25, 0.0))
    assert RUINED.share(0) == "0 to 25 %"
    assert SOUND.share(0) == "50 %"
    assert Curve.of("none", [Acceptance.of(3, [])]).positions == 0


@pytest.mark.parametrize(
    ("accepted", "rounds", "share"),
    [(0, 9, "0 %"), (1, 5000, "<0.1 %"), (1, 300, "0.3 %"), (1, 10, "10 %"), (9, 9, "100 %")],
)
def test_a_few_acceptances_are_not_none(accepted: int, rounds: int, share: str) -> None:
    curve = Curve.of("c", [Acceptance(steps=1, rounds=rounds, accepted_at=(accepted,))])
    assert curve.share(0) == share


def test_bars_stand_beside_each_other_at_each_position() -> None:
    lines = bars([SOUND, RUINED], PLAIN).splitlines()
    assert lines[0] == TITLE
    assert lines[1].startswith("  draft 1  as trained")
    assert lines[1].count("█") == BAR / 2
    assert lines[2].count("░") == BAR / 4
    assert lines[2].endswith("0 to 25 %")
    assert lines[3].startswith("  draft 2  as trained")
    assert len(lines) == 5


def test_bars_in_ascii() -> None:
    text = bars([SOUND, RUINED], Style(color=False, unicode=False))
    assert text.isascii()
    assert text.count("#") == BAR / 2 + BAR / 4


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_picture_appears_whole_and_alone(tmp_path: Path, suffix: str) -> None:
    file = picture.drawable(tmp_path / f"acceptance{suffix}")
    picture.draw([SOUND, RUINED], file, title="Title", subtitle="what was measured")
    assert [found.name for found in tmp_path.iterdir()] == [file.name]
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG") if suffix == ".png" else b"<svg" in content


def test_a_picture_that_cannot_be_drawn_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="cannot be written as"):
        picture.drawable(tmp_path / "a.jpeg")
    with pytest.raises(UsageError, match="does not exist"):
        picture.drawable(tmp_path / "nowhere" / "a.png")
    monkeypatch.setattr(picture, "can_draw", lambda: False)
    with pytest.raises(UsageError) as raised:
        picture.drawable(tmp_path / "a.png")
    assert raised.value.hint == "pip install 'eyas[report]'"
