"""The report page in a real browser; `make test-report` runs this where a Chromium is installed.

With PICTURES=DIR it keeps what was seen there.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.diagnose import made_up
from tests.diagnose.browser import COMPLAINTS, tab

from eyas.diagnose.page import page, write

SIZES = "[...document.querySelectorAll('#{name} rect')].map(r => r.getBoundingClientRect().width)"
OUTSIDE = """[...document.querySelectorAll('svg text, svg rect')].filter(e => {
    const inner = e.getBoundingClientRect(), outer = e.closest('svg').getBoundingClientRect();
    return inner.right > outer.right + 1 || inner.bottom > outer.bottom + 1;
}).map(e => e.textContent)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360])
def test_the_page_is_drawn_and_asks_for_nothing(tmp_path: Path, width: int, scheme: str) -> None:
    file = tmp_path / "report.html"
    found = replace(made_up.DIAGNOSIS, training=made_up.TRAINING)
    write(file, page(found, made_up.decode, made_up.LANDING))
    with tab(tmp_path / "profile", width=width, scheme=scheme) as seen:
        seen.open(file.as_uri())
        bars = seen.ask(SIZES.format(name="acceptance"))
        fall = seen.ask(SIZES.format(name="waterfall"))
        assert len(bars) == 13
        assert bars[0] == pytest.approx(2 * bars[5], rel=0.02)  # 60 % and 30 % as trained
        assert min(fall) > 0
        assert len(fall) == 4
        assert seen.ask(OUTSIDE) == []
        assert seen.ask("document.documentElement.scrollWidth") <= width
        assert seen.ask("document.scripts.length + document.images.length") == 0
        ground = seen.ask("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(21, 23, 26)") == (scheme == "dark")
        if os.environ.get("PICTURES"):
            seen.picture(Path(os.environ["PICTURES"]) / f"report-{width}-{scheme}.png")
        assert seen.of(*COMPLAINTS) == []
        asked = {event["request"]["url"] for event in seen.of("Network.requestWillBeSent")}
        assert asked <= {file.as_uri(), "data:,"}
