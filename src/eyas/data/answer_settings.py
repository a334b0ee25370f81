"""How answers are generated, and the note of it that a directory of answers keeps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from eyas.checkpoint import whole_file
from eyas.data.prompts import Prompt
from eyas.errors import UsageError

FILE = "settings.json"
HINT = "give another directory, or remove this one"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSettings:
    """How answers are generated. Prompt i takes temperature i modulo their number; 0 is greedy."""

    batch_size: int
    max_prompt_tokens: int
    max_new_tokens: int
    temperatures: tuple[float, ...]
    seed: int


def keep_settings(
    directory: Path, target: str, settings: AnswerSettings, prompts: Sequence[Prompt]
) -> None:
    """Note in a new `directory` what its answers are made of; compare where a note is.

    Shards are told apart by their numbers alone, and those depend on all of this. Raises
    UsageError when the note says otherwise, or there are answers without one.
    """
    asked = json.dumps([asdict(prompt) for prompt in prompts]).encode()
    made_of = {
        "target": target,
        **asdict(settings),
        "temperatures": list(settings.temperatures),
        "prompts": hashlib.sha256(asked).hexdigest(),
    }
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / FILE
    if file.exists():
        held = _read(file)
        for name, value in made_of.items():
            if held.get(name) != value:
                raise UsageError(
                    f"the answers in `{directory}` were made with {name} = {held.get(name)!r},"
                    f" not {value!r}",
                    hint=HINT,
                )
        return
    if any(directory.glob("answers-*.jsonl")):
        raise UsageError(
            f"`{directory}` holds answers, but no {FILE} that says what they were made of",
            hint=HINT,
        )
    with whole_file(file) as unfinished:
        unfinished.write_text(json.dumps(made_of, indent=2) + "\n", encoding="utf-8")


def _read(file: Path) -> dict[str, object]:
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"`{file}` cannot be read: {error}", hint=HINT) from error
    if not isinstance(held, dict):
        raise UsageError(f"`{file}` is no note of settings", hint=HINT)
    return held
