"""ConfigView: the keys of a draft config as an engine's reader sees them, each as a Fact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from eyas.spec import Fact, assumed, declared

# What transformers' LlamaConfig fills in for an absent key (5.19.0 and 4.57.1 agree on these).
# num_key_value_heads and head_dim follow from other keys and are not here.
LLAMA_DEFAULTS: Mapping[str, object] = {
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigView:
    """Merged config values, the place of each, and whose defaults fill the gaps.

    `stop` makes the exception for a key that is needed, absent (or null, or of the wrong type)
    and has no default; it takes a sentence.
    """

    values: Mapping[str, object]
    whose: str
    stop: Callable[[str], Exception]
    file: str = "config.json"
    places: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, object] = field(default_factory=dict)

    def key(self, name: str) -> str:
        """Where `name` stands or would stand: ``config.json :: hidden_size``."""
        return f"{self.file} :: {self.places.get(name, name)}"

    def has(self, name: str) -> bool:
        """Whether the key is there, even as null."""
        return name in self.values

    def without(self, name: str) -> ConfigView:
        """The same as a reader sees it that does not look for `name`."""
        return replace(self, values={k: v for k, v in self.values.items() if k != name})

    def get(self, name: str) -> object:
        """The raw value, None when absent."""
        return self.values.get(name)

    def whole(self, name: str, default: int | None = None) -> Fact[int]:
        """A whole number."""
        value = self.values.get(name)
        if value is None:
            value = self._absent(name, default)
            return self._number(name, value, self._assumed)
        return self._number(name, value, declared)

    def _number(self, name: str, value: object, fact: Callable[[int, str], Fact[int]]) -> Fact[int]:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.stop(f"{self.key(name)} is {value!r} where a whole number is needed")
        return fact(value, self.key(name))

    def real(self, name: str) -> Fact[float]:
        """A number."""
        value = self.values.get(name)
        given = value is not None
        if not given:
            value = self._absent(name, None)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.stop(f"{self.key(name)} is {value!r} where a number is needed")
        make = declared if given else self._assumed
        return make(float(value), self.key(name))

    def text(self, name: str) -> Fact[str]:
        """A word."""
        value = self.values.get(name)
        given = value is not None
        if not given:
            value = self._absent(name, None)
        if not isinstance(value, str):
            raise self.stop(f"{self.key(name)} is {value!r} where a word is needed")
        make = declared if given else self._assumed
        return make(value, self.key(name))

    def flag(self, name: str, default: bool = False) -> Fact[bool]:
        """A switch, read by truthiness as both engines do; absent and null are `default`."""
        value = self.values.get(name)
        if value is None:
            return assumed(default, self.key(name), whose=self.whose)
        return declared(bool(value), self.key(name))

    def ids(self, name: str) -> tuple[int, ...] | None:
        """A list of layer ids, None when absent or empty."""
        return layer_ids(self.values.get(name), self.key(name), self.stop)

    def table(self, name: str) -> Mapping[str, object]:
        """A nested object, empty when absent."""
        value = self.values.get(name)
        return value if isinstance(value, dict) else {}

    def _absent(self, name: str, default: object) -> object:
        value = self.defaults.get(name, default)
        if value is None:
            raise self.stop(f"{self.key(name)} is missing")
        return value

    def _assumed(self, value: object, key: str) -> Fact:  # type: ignore[type-arg]
        return assumed(value, key, whose=self.whose)


def layer_ids(value: object, key: str, stop: Callable[[str], Exception]) -> tuple[int, ...] | None:
    """`value` as layer ids; None when there are none."""
    if not value:
        return None
    if not isinstance(value, list) or any(
        isinstance(i, bool) or not isinstance(i, int) for i in value
    ):
        raise stop(f"{key} is {value!r} where a list of layer ids is needed")
    return tuple(value)
