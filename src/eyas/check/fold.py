"""Names folded for a reader: ``layers.{0..27}.mlp.*`` instead of 84 lines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import groupby

NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.)")


def fold(names: Iterable[str], *, among: Collection[str]) -> tuple[str, ...]:
    """Patterns that stand for `names` and for nothing else of `among`, in order of appearance.

    ``prefix.*`` stands for every name of `among` below the prefix; ``{0..3}`` for numbers.
    """
    chosen = list(dict.fromkeys(names))
    patterns = dict.fromkeys(_widest(name, set(chosen), among) for name in chosen)
    return merge_numbers(patterns)


def _widest(name: str, chosen: set[str], among: Collection[str]) -> str:
    """The shortest ``prefix.*`` over `name` that covers chosen names alone, or the name itself."""
    parts = name.split(".")
    for depth in range(1, len(parts)):
        if parts[depth].isdecimal():
            continue  # layers.0.* tells more than layers.*
        prefix = ".".join(parts[:depth]) + "."
        below = [other for other in among if other.startswith(prefix)]
        if len(below) > 1 and all(other in chosen for other in below):
            return prefix + "*"
    return name


def template(name: str) -> str:
    """`name` with its first number replaced by ``{}``: what two layers have in common."""
    return NUMBER.sub("{}", name, count=1)


def number(name: str) -> int | None:
    """The first number among the parts of `name`."""
    found = NUMBER.search(name)
    return None if found is None else int(found.group())


def merge_numbers(patterns: Iterable[str]) -> tuple[str, ...]:
    """`patterns` with those that differ only in their first number merged into one."""
    numbers: dict[str, list[int]] = {}
    for pattern in patterns:
        index = number(pattern)
        numbers.setdefault(template(pattern), []).extend([] if index is None else [index])
    return tuple(
        shape.replace("{}", _ranges(indices), 1) if indices else shape
        for shape, indices in numbers.items()
    )


def _ranges(indices: list[int]) -> str:
    """``0``, ``{0..3}`` or ``{0..3,7}``."""
    ordered = sorted(set(indices))
    if len(ordered) == 1:
        return str(ordered[0])
    runs = []
    for _, run in groupby(enumerate(ordered), key=lambda pair: pair[1] - pair[0]):
        members = [index for _, index in run]
        runs.append(str(members[0]) if len(members) == 1 else f"{members[0]}..{members[-1]}")
    return "{" + ",".join(runs) + "}"
