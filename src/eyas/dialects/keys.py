"""Typed reading of a config's keys, each value with the place it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from eyas.errors import CheckpointError
from eyas.spec import Fact, Origin, declared

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Keys:
    """One object of a config. A key that is absent or null reads as None.

    Every method raises CheckpointError for a value of another type.
    """

    values: Mapping[str, Any]
    file: str
    prefix: str = ""

    def place(self, key: str) -> str:
        """Where `key` is, or would be: ``config.json :: eagle_config.layer_ids``."""
        return f"{self.file} :: {self.prefix}{key}"

    def section(self, key: str) -> Keys:
        """The object under `key`; an empty one when it is absent."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, dict):
            raise self._wrong(key, value, "an object")
        return Keys(value or {}, self.file, f"{self.prefix}{key}.")

    def integer(self, key: str) -> Fact[int] | None:
        """A whole number of at least 0."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._wrong(key, value, "a whole number")
        return declared(value, self.place(key))

    def size(self, key: str) -> Fact[int] | None:
        """A number of at least 1."""
        fact = self.integer(key)
        if fact is not None and fact.value == 0:
            raise self._wrong(key, 0, "a number of at least 1")
        return fact

    def number(self, key: str) -> Fact[float] | None:
        """Any number."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300:
            raise self._wrong(key, value, "a number")
        return declared(float(value), self.place(key))

    def flag(self, key: str) -> Fact[bool] | None:
        """True or false."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, bool):
            raise self._wrong(key, value, "true or false")
        return declared(value, self.place(key))

    def text(self, key: str) -> Fact[str] | None:
        """A text."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._wrong(key, value, "a text")
        return declared(value, self.place(key))

    def integers(self, key: str, *, least: int = 0) -> Fact[tuple[int, ...]] | None:
        """A list of whole numbers of at least `least`."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(v) is int and v >= least for v in value):
            raise self._wrong(key, value, "a list of whole numbers")
        return declared(tuple(value), self.place(key))

    def _wrong(self, key: str, value: object, needed: str) -> CheckpointError:
        return CheckpointError(
            f"{self.place(key)} is {shown(value)} where {needed} is needed",
            hint="correct the config",
        )


def first(facts: Iterable[Fact[T] | None]) -> Fact[T] | None:
    """The first of `facts` that is stated, None where none is."""
    return next((fact for fact in facts if fact is not None), None)


def needed(fact: Fact[T] | None, place: str) -> Fact[T]:
    """`fact`, or CheckpointError: neither the config nor a tensor tells it."""
    if fact is None:
        raise CheckpointError(f"{place} is missing, and no tensor tells it", hint="add the key")
    return fact


def or_absent(fact: Fact[T] | None, place: str) -> Fact[T | None]:
    """`fact`, or None from `place`, where nothing is stated and no default applies."""
    if fact is None:
        return Fact(value=None, origin=Origin.ABSENT, key=place)
    return Fact(value=fact.value, origin=fact.origin, key=fact.key, whose=fact.whose)


def shown(value: object) -> str:
    """`value` as a message shows it: not too much of it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def architectures(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The class names that a config declares."""
    value = config.get("architectures")
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()
