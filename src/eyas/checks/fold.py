"""Names folded for a reader: ``layers.{0..27}.mlp.*`` instead of 84 lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.)")


def fold(names: Iterable[str], *, among: Collection[str]) -> tuple[str, ...]:
    """Patterns that stand for `names` and for nothing else of `among`, in order of appearance.

    ``prefix.*`` stands for every name of `among` below the prefix; ``{0..3}`` for numbers.
    """
    return Folder(among).fold(names)


class Folder:
    """Folds several lists of names among the same others, which it counts once."""

    def __init__(self, among: Collection[str]) -> None:
        self._everywhere = set(among)
        self._below = Counter(p for name in self._everywhere for p in _prefixes(name))

    def fold(self, names: Iterable[str]) -> tuple[str, ...]:
        """See the function of that name."""
        chosen = list(dict.fromkeys(names))
        known = (name for name in chosen if name in self._everywhere)
        inside = Counter(prefix for name in known for prefix in _prefixes(name))
        whole = {p for p, count in inside.items() if count > 1 and count == self._below[p]}
        patterns = dict.fromkeys(_widest(name, whole) for name in chosen)
        return merge_numbers(patterns)


def _prefixes(name: str) -> Iterator[str]:
    """Each ``prefix.`` of `name`, the shortest first."""
    end = name.find(".")
    while end >= 0:
        yield name[: end + 1]
        end = name.find(".", end + 1)


def _widest(name: str, whole: Collection[str]) -> str:
    """The shortest ``prefix.*`` over `name` whose prefix is in `whole`, or the name itself."""
    for prefix in _prefixes(name):
        following = name[len(prefix) :].partition(".")[0]
        if prefix in whole and not following.isdecimal():  # layers.0.* tells more than layers.*
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
