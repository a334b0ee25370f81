"""TargetFacts: what a target's config.json says of its sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyas.checkpoint.cache import cache_dir
from eyas.checkpoint.hub import Part, parse_hub_id
from eyas.checkpoint.json_file import read_json_object
from eyas.checkpoint.place import GGUF_SUFFIX, Place, locate
from eyas.checkpoint.regular import regular_file
from eyas.errors import CheckpointError, TargetError
from eyas.spec import Rope

# Wrappers of multimodal models keep the language model's sizes one level down.
# Qwen's omni models wrap their thinker, which wraps its language model.
_TEXT_KEYS = ("text_config", "llm_config", "language_config", "thinker_config")
_DRAFTER_KEYS = ("draft_vocab_size", "speculators_model_type", "eagle_config")
SMOLLM2 = "smollm2"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """Sizes of a target as its config states them; None where it does not.

    `architectures` and `model_type` are the outer model's, `text_model_type` is the language
    model's inside a wrapper (the same as `model_type` where there is none). `name` is the model's
    name on the Hub, where `location` or the config gives it, and `revision` the Hub commit. `rope`
    is None too where each kind of layer has a rotary embedding of its own.
    """

    location: str
    directory: Path
    architectures: tuple[str, ...]
    model_type: str | None
    text_model_type: str | None
    hidden_size: int | None
    intermediate_size: int | None
    num_layers: int | None
    num_attention_heads: int | None
    num_key_value_heads: int | None
    head_dim: int | None
    vocab_size: int | None
    max_position_embeddings: int | None
    rope_theta: float | None
    dtype: str | None
    tie_word_embeddings: bool | None
    rope: Rope | None = None
    name: str | None = None
    revision: str | None = None


def smollm2_dir() -> Path:
    """Where ``eyas target smollm2`` puts the embedded target."""
    return cache_dir() / "targets" / "SmolLM2-135M-Instruct"


def open_target(location: str | Path) -> TargetFacts:
    """The facts of the target at `location`, from its config.json or its GGUF keys alone.

    `location` is a directory, a config file, a GGUF file, a Hub id, or ``smollm2`` for the embedded
    target. Raises TargetError when it cannot be opened, FetchError when the Hub cannot be reached.
    """
    if str(location).endswith(GGUF_SUFFIX):
        from eyas.checkpoint.gguf_target import read_target

        return read_target(str(location))
    try:
        place, file = _place(location)
        path = regular_file(place.directory, file)
        config = read_json_object(path, hint="a target needs a Hugging Face config.json")
    except CheckpointError as error:
        raise TargetError(
            f"the target cannot be opened: {error.message}", hint=error.hint
        ) from None
    _require_no_drafter(location, config)
    text = _language_model(config)
    read = _Reader(path, text, config)
    return TargetFacts(
        location=str(location),
        directory=path.parent,
        architectures=read.names("architectures"),
        model_type=_text(config.get("model_type")),
        text_model_type=_text(text.get("model_type")) or _text(config.get("model_type")),
        hidden_size=read.size("hidden_size", "n_embd", "d_model"),
        intermediate_size=read.size("intermediate_size", "n_inner"),
        num_layers=read.size("num_hidden_layers", "n_layer", "num_layers"),
        num_attention_heads=read.size("num_attention_heads", "n_head"),
        num_key_value_heads=read.size("num_key_value_heads"),
        head_dim=read.size("head_dim"),
        vocab_size=read.size("vocab_size"),
        max_position_embeddings=read.size("max_position_embeddings", "n_positions"),
        rope_theta=read.theta(),
        rope=read.rope(),
        name=_hub_name(location, path) or _hub_name(config.get("_name_or_path"), None),
        dtype=read.dtype(),
        tie_word_embeddings=read.flag("tie_word_embeddings"),
        revision=place.revision,
    )


def _language_model(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model's own object: inside its wrappers, however many, or `config` itself."""
    inner: Mapping[str, Any] | None = config
    while inner is not None:
        config = inner
        inner = next((config[k] for k in _TEXT_KEYS if isinstance(config.get(k), Mapping)), None)
    return config


def _hub_name(typed: Any, config: Path | None) -> str | None:
    """`typed` without its revision, where it is a name on the Hub and no path."""
    if not isinstance(typed, str) or (config is not None and Path(typed).exists()):
        return None
    hub_id = parse_hub_id(typed)
    return None if hub_id is None else hub_id.repo


def _require_no_drafter(location: str | Path, config: Mapping[str, Any]) -> None:
    mark = next((key for key in _DRAFTER_KEYS if config.get(key) is not None), None)
    if mark is not None:
        raise TargetError(
            f"{location} is itself a drafter: its config has {mark}",
            hint="name the model that is served, whose tokens the drafter guesses",
        )


def _place(location: str | Path) -> tuple[Place, str]:
    """Where the target is, and the name of its config there."""
    typed = str(location)
    if typed == SMOLLM2:
        directory = smollm2_dir()
        if not directory.is_dir():
            raise CheckpointError(
                f"the target smollm2 is not in {directory}", hint="run: eyas target smollm2"
            )
        return Place(directory=directory), "config.json"
    path = Path(typed).expanduser()
    if path.suffix == ".json":
        return Place(directory=path.parent), path.name
    return locate(location, Part.CONFIG), "config.json"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the language model's keys first, the wrapper's where they are absent."""

    path: Path
    text: Mapping[str, Any]
    outer: Mapping[str, Any]

    def _value(self, key: str) -> Any:
        value = self.text.get(key)
        return self.outer.get(key) if value is None else value

    def size(self, *keys: str) -> int | None:
        for key in keys:
            value = self._value(key)
            if value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise TargetError(
                    f"{self.path} says {key} is {str(value)[:80]!r} where a number is needed",
                    hint="check that --target is a model's directory",
                )
            return value
        return None

    def flag(self, key: str) -> bool | None:
        value = self._value(key)
        return value if isinstance(value, bool) else None

    def theta(self) -> float | None:
        """The base of the rotary embedding, in the spelling of transformers 5 or 4."""
        table = self._value("rope_parameters")
        value = table.get("rope_theta") if isinstance(table, Mapping) else None
        value = self._value("rope_theta") if value is None else value
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if number else None

    def rope(self) -> Rope | None:
        """The rotary embedding, where one is stated and it is the same in every layer."""
        theta = self.theta()
        table = self._value("rope_scaling") or self._value("rope_parameters") or {}
        if theta is None or not isinstance(table, Mapping):
            return None
        if any(isinstance(value, Mapping) for value in table.values()):
            return None
        return Rope.of_table(theta, table)

    def dtype(self) -> str | None:
        return _text(self._value("dtype")) or _text(self._value("torch_dtype"))

    def names(self, key: str) -> tuple[str, ...]:
        value = self.outer.get(key)
        return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()
