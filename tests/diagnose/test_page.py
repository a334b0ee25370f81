"""The report page: its plots have the numbers, its text is escaped, and it asks for nothing."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest
from tests.diagnose import made_up
from tests.diagnose.made_up import DIAGNOSIS, HARMFUL, LANDING

from eyas.diagnose.marked import Mark, marked
from eyas.diagnose.outcome import Diagnosis
from eyas.diagnose.page import page, writable, write
from eyas.diagnose.waterfall import COMPANY, waterfall
from eyas.errors import UsageError
from eyas.spec import Landing

VOID = {"meta", "link", "br", "line", "rect"}  # no end tag, or closed at once in SVG
FETCHING = {"src", "href", "xlink:href", "srcset", "data", "action", "poster", "background"}


class Elements(HTMLParser):
    """Every element with its attributes and text; raises where tags do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def named(self, tag: str, name: str = "") -> list[dict[str, str | None]]:
        """The attributes of the elements `tag` that have the class `name`."""
        return [
            held
            for found, held in self.found
            if found == tag and (not name or name in (held.get("class") or "").split())
        ]


def elements(found: Diagnosis = DIAGNOSIS, landing: Landing | None = LANDING) -> Elements:
    return Elements(page(found, made_up.decode, landing))


def width(bar: dict[str, str | None]) -> float:
    return float((bar["width"] or "").removesuffix("%"))


def test_the_bars_have_the_rates() -> None:
    bars = elements().named("rect", "bar")
    # three readings at positions 1 and 2, and what was observed has no third
    assert [bar["class"] for bar in bars] == ["bar s0", "bar s1", "bar s2"] * 2 + [
        "bar s0",
        "bar s1",
    ]
    per_share = width(bars[0]) / 0.6
    lows = [0.6, 0.08, 0.1, 0.3, 0.02, 0.0, 0.1, 0.0]
    assert [width(bar) / per_share for bar in bars] == pytest.approx(lows, abs=1e-4)
    possible = elements().named("rect", "possible")
    assert [width(bar) / per_share for bar in possible] == pytest.approx([0.08, 0.02], abs=1e-4)
    assert "8.0 to 16 %" in elements().texts


def test_the_waterfall_goes_from_trained_to_served() -> None:
    steps = waterfall(DIAGNOSIS)
    assert [(step.label, step.text) for step in steps] == [
        ("as trained", "2.00"),
        ("fusion-bypassed", "−0.80"),
        ("layer-lost", "−0.10"),  # 0.70 alone, and 0.10 are left to lose
        ("as served by sglang@0.5.10.post1", "1.10"),
    ]
    top, first, second, last = steps
    assert first.left + first.width == pytest.approx(top.width)
    assert second.left + second.width == pytest.approx(first.left)
    assert last.width == pytest.approx(second.left)
    assert len(elements().named("rect", "fall")) == 2


def test_what_prices_do_not_explain_falls_in_company() -> None:
    one = replace(DIAGNOSIS, priced=(made_up.priced(made_up.CauseId.ROPE, 0.3, 0.2),))
    assert [(step.label, step.text) for step in waterfall(one)[1:3]] == [
        ("rope", "−0.30"),
        (COMPANY, "−0.60"),
    ]


def test_there_is_no_waterfall_without_two_ends() -> None:
    unserved = replace(DIAGNOSIS, served=())
    assert waterfall(unserved) == ()
    found = elements(unserved)
    assert [held["id"] for held in found.named("svg")] == ["acceptance"]
    repaired = replace(unserved, engine=None, repaired=made_up.measure("repaired", 2.5, (0.7,)))
    texts = [step.text for step in waterfall(repaired)]
    assert texts == ["2.50", "−0.50", "nothing left to lose", "2.00"]


def test_names_from_files_are_text_and_nothing_else() -> None:
    text = page(DIAGNOSIS, made_up.decode, LANDING)
    found = Elements(text)
    assert "<script" not in text
    assert {tag for tag, _ in found.found} & {"script", "iframe", "img", "object", "b>"} == set()
    said = "".join(found.texts)
    # the verdict, two causes with two commands, a difference, a landing, a note and more
    assert said.count(HARMFUL) >= 9
    assert f"layers.0.{HARMFUL}" in said
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\u202e" in said


def test_nothing_is_fetched() -> None:
    found = elements()
    for _, held in found.found:
        for name in FETCHING & held.keys():
            assert held[name] == "data:,"
        assert not any(name.startswith("on") for name in held)
    style = page(DIAGNOSIS, made_up.decode).partition("</style>")[0]
    assert not re.search(r"url\(|@import|@font-face", style)


def test_the_landing_says_what_is_filled_lost_and_the_targets() -> None:
    found = elements()
    assert len(found.named("td", "filled")) == 1
    assert len(found.named("td", "unfilled")) == 1
    assert len(found.named("td", "replaced")) == 1
    assert len(found.named("td", "lost-row")) == 2
    assert "uninitialised memory" in found.texts
    assert [h for h in elements(landing=None).named("table") if h["id"] == "landing"] == []


def test_pieces_of_an_answer_are_marked_and_the_text_is_whole() -> None:
    (passage,) = marked(DIAGNOSIS.samples, made_up.decode)
    assert [(piece.mark, piece.text) for piece in passage.pieces] == [
        (Mark.OWN, "The"),
        (Mark.KEPT, " cat"),
        (Mark.LOST, " <b>"),
        (Mark.GAINED, " sat"),
        (Mark.LOST, " down"),
        (Mark.OWN, "."),
    ]
    assert len(elements().named("span", "lost")) == 3  # two pieces and the legend


def test_without_an_engine_two_marks_are_enough() -> None:
    (sample,) = DIAGNOSIS.samples
    (passage,) = marked([replace(sample, served=None)], made_up.decode)
    assert [piece.mark for piece in passage.pieces] == [
        Mark.OWN,
        Mark.KEPT,
        Mark.OWN,
        Mark.KEPT,
        Mark.OWN,
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [("report.pdf", "report.pdf"), ("missing/report.html", "mkdir"), ("", "is not written")],
)
def test_a_page_that_cannot_be_written_is_refused_first(
    tmp_path: Path, name: str, said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        writable(tmp_path / name)
    assert said in f"{caught.value.message} {caught.value.hint}"


def test_without_jinja2_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent: dict[str, ModuleType | None] = {"jinja2": None}
    monkeypatch.setattr(sys, "modules", {**sys.modules, **absent})
    with pytest.raises(UsageError) as caught:
        writable(tmp_path / "report.html")
    assert caught.value.hint == "pip install 'eyas[report]'"


def test_the_file_is_whole_or_not_there(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    write(file, "<p>\udcff é</p>")
    assert file.read_bytes().decode() == "<p>\\udcff é</p>"
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(UsageError):
        write(tmp_path / "missing" / "report.html", "")
