"""The known name that a mistyped one was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterable


def suggestion(typed: str, known: Iterable[str]) -> str | None:
    """The name of `known` that is nearest to `typed`, or None when none is near."""
    from difflib import get_close_matches

    near = get_close_matches(typed.lower(), list(known), n=1, cutoff=0.6)
    return near[0] if near else None
