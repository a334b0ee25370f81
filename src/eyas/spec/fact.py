"""A fact of a model, and where it was learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Origin(StrEnum):
    """How a fact came to be known."""

    DECLARED = "declared"  # a config key states it
    INFERRED = "inferred"  # tensor names, shapes or bytes imply it
    ASSUMED = "assumed"  # absent: somebody's default fills it in
    ABSENT = "absent"  # absent, and nobody's default applies: the value is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Generic[T]):
    """A value with its source.

    `key` is the place it was read from, such as ``config.json :: rope_theta`` or
    ``model.safetensors :: fc.weight``; for an assumed value it is the key that is missing, and
    `whose` names the code whose default is taken. Where producers mean different things by one key,
    `whose` of a declared value names those whose meaning is taken.
    """

    value: T
    origin: Origin
    key: str
    whose: str | None = None

    def map(self, change: Callable[[T], U]) -> Fact[U]:
        """The same fact with its value translated; the source stays."""
        return Fact(value=change(self.value), origin=self.origin, key=self.key, whose=self.whose)


def declared(value: T, key: str) -> Fact[T]:
    """A fact that a config key states."""
    return Fact(value=value, origin=Origin.DECLARED, key=key)


def inferred(value: T, key: str) -> Fact[T]:
    """A fact that tensor names, shapes or bytes imply."""
    return Fact(value=value, origin=Origin.INFERRED, key=key)


def assumed(value: T, key: str, *, whose: str) -> Fact[T]:
    """A fact that is absent from `key` and filled in by somebody's default."""
    return Fact(value=value, origin=Origin.ASSUMED, key=key, whose=whose)


def absent(key: str) -> Fact[T | None]:
    """A fact that is absent from `key`, and for which no default is known."""
    return Fact(value=None, origin=Origin.ABSENT, key=key)
