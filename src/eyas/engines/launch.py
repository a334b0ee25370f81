"""Launch: what the engine's command line decides about a drafter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eyas.engines.suggestion import suggestion
from eyas.errors import UsageError
from eyas.spec import Fact, declared

Settings = Mapping[str, str]


def context_of(settings: Settings, option: str) -> Fact[int] | None:
    """The longest sequence, in tokens, where the launch says it under `option`."""
    typed = settings.get(option)
    return None if typed is None else declared(int(typed), f"launch :: {option}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchKey:
    """A launch option of an engine: its name and the values it takes (None: a whole number).

    `sound` is the value under which an EAGLE-3 drafter is served as trained, None where any is.
    """

    name: str
    values: tuple[str, ...] | None
    meaning: str
    sound: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Launch options as typed, by name; a name may carry the engine it is for (``vllm.method``)."""

    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Launch:
        """The launch that ``key=value`` texts spell; raises UsageError.

        Keys may be spelled as on the engine's own command line (``--speculative-algorithm``).
        """
        settings: dict[str, str] = {}
        for text in texts:
            key, separator, value = text.partition("=")
            key = key.strip().lstrip("-").replace("-", "_")
            if not separator or not key or not value.strip():
                raise UsageError(
                    f"the launch option {text!r} is not of the form key=value",
                    hint="write for example speculative_algorithm=EAGLE3",
                )
            if key in settings:
                raise UsageError(f"the launch option {key!r} is given twice", hint="give it once")
            settings[key] = value.strip()
        return cls(settings=tuple(settings.items()))

    def for_engine(
        self, engine: str, keys: Iterable[LaunchKey], others: Mapping[str, Iterable[LaunchKey]]
    ) -> Settings:
        """The settings that `engine` takes, validated; raises UsageError.

        `others` are the launch keys of the other engines: options that name one are theirs.
        """
        known = {key.name: key for key in keys}
        chosen: dict[str, str] = {}
        for typed, value in self.settings:
            owner, separator, name = typed.partition(".")
            if separator and owner in others:
                _validated(owner, {key.name: key for key in others[owner]}, name, value)
                continue
            if not separator or owner != engine:
                name = typed
            if name not in known:
                raise _unknown(engine, known, name, others)
            chosen[name] = _validated(engine, known, name, value)
        return chosen


def _validated(engine: str, known: Mapping[str, LaunchKey], name: str, value: str) -> str:
    if name not in known:
        raise _unknown(engine, known, name, {})
    values = known[name].values
    if values is None:
        if not value.isdecimal():
            raise UsageError(
                f"the launch option {name!r} of {engine} takes a whole number, not {value!r}",
                hint=f"write for example {name}=3",
            )
        return value
    match = next((v for v in values if v.lower() == value.lower()), None)
    if match is None:
        raise UsageError(
            f"the launch option {name!r} of {engine} cannot be {value!r} for an EAGLE-3 drafter",
            hint=f"one of: {', '.join(values)}",
        )
    return match


def _unknown(
    engine: str,
    known: Mapping[str, LaunchKey],
    name: str,
    others: Mapping[str, Iterable[LaunchKey]],
) -> UsageError:
    owner = next((o for o, keys in others.items() if any(k.name == name for k in keys)), None)
    if owner is not None:
        hint = f"it is one of {owner}: write {owner}.{name}=…"
    else:
        near = suggestion(name, known)
        meant = f"did you mean {near}? " if near else ""
        hint = f"{meant}known: {', '.join(known)}"
    return UsageError(f"{engine} has no launch option {name!r} that eyas knows", hint=hint)
