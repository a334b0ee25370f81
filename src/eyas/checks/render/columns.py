"""Rows of text in aligned columns."""

from __future__ import annotations

from collections.abc import Sequence

WIDEST = 60  # characters: one long cell must not push every other row apart


def columns(rows: Sequence[Sequence[str]], *, indent: str = "  ") -> str:
    """`rows` as lines with aligned columns; a cell wider than 60 characters stands out alone."""
    if not rows:
        return ""
    count = max(len(row) for row in rows)
    widths = [
        max((len(row[i]) for row in rows if i < len(row) and len(row[i]) <= WIDEST), default=0)
        for i in range(count)
    ]
    return "\n".join(
        (
            indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        ).rstrip()
        for row in rows
    )
