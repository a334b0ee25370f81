"""Write docs/rules.md from the docstrings of the rules.

python scripts/rules_page.py
"""

from __future__ import annotations

from pathlib import Path

from eyas.checks.render.rules import page

PUBLISHED = Path(__file__).resolve().parents[1] / "docs" / "rules.md"


def main() -> None:
    """Writes the page."""
    PUBLISHED.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
