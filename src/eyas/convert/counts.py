"""How often each token of the target was seen: from a file of counts, or from a text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyas.checkpoint.json_file import read_json_object
from eyas.errors import UsageError, reason_of

if TYPE_CHECKING:
    from eyas.checkpoint import TargetFacts

_TOGETHER = 1000  # texts that are tokenised in one call


def read_counts(file: Path) -> dict[int, float]:
    """The counts of a JSON object ``{"id": count}``, or of lines ``id count``.

    Raises UsageError for anything else.
    """
    text = _read(file)
    try:
        found = json.loads(text)
        pairs: list[Any] = list(found.items()) if isinstance(found, Mapping) else []
    except ValueError:
        pairs = [line.split() for line in text.splitlines() if line.strip()]
    try:
        counts = {int(token): float(count) for token, count in pairs}
    except (TypeError, ValueError):
        counts = {}
    if not counts or any(token < 0 or not 0 <= count < 1e300 for token, count in counts.items()):
        raise UsageError(
            f"{file} holds no counts of tokens",
            hint='write {"id": count} as JSON, or a line `id count` for each token',
        )
    return counts


def count_corpus(file: Path, target: TargetFacts | None) -> dict[int, float]:
    """How often each of the target's tokens is in a text, or in the texts of a JSONL file.

    A line of JSONL holds ``text``, or ``messages`` with a ``content`` each. Raises UsageError where
    the file has none, or where the target's tokenizer.json is not at hand.
    """
    tokenizer = _tokenizer(target)
    counts: Counter[int] = Counter()
    batch: list[str] = []
    for text in _texts(file):
        batch.append(text)
        if len(batch) == _TOGETHER:
            _count(tokenizer, batch, counts)
            batch = []
    _count(tokenizer, batch, counts)
    if not counts:
        raise UsageError(f"{file} holds no text", hint="name a .txt or .jsonl file with texts")
    return {token: float(count) for token, count in counts.items()}


def end_ids(target: TargetFacts) -> tuple[int, ...]:
    """The ids that end an answer, as the target's generation config or its config says.

    An answer of a corpus does not hold them, and a drafter without them never drafts an end.
    """
    for name in ("generation_config.json", "config.json"):
        if not (target.directory / name).is_file():
            continue
        found = read_json_object(target.directory / name, hint="fetch it again").get("eos_token_id")
        ids = found if isinstance(found, list) else [found]
        if all(type(token) is int for token in ids):
            return tuple(ids)
    return ()


def _count(tokenizer: Any, texts: list[str], counts: Counter[int]) -> None:
    for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False):
        counts.update(encoding.ids)


def _texts(file: Path) -> Iterator[str]:
    lines = _read(file).splitlines(keepends=True)
    if file.suffix != ".jsonl":
        yield from lines
        return
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        entry = entry if isinstance(entry, Mapping) else {}
        messages = entry.get("messages")
        found = [entry.get("text")] if not isinstance(messages, list) else messages
        contents = [m.get("content") if isinstance(m, Mapping) else m for m in found]
        texts = [text for text in contents if isinstance(text, str)]
        if not texts or len(texts) < len(contents):
            raise UsageError(
                f"line {number} of {file} has neither a text nor messages",
                hint='a line is {"text": …} or {"messages": [{"content": …}]}',
            )
        yield from texts


def _tokenizer(target: TargetFacts | None) -> Any:
    if target is None:
        raise UsageError(
            "a corpus is counted in the target's tokens, and no target is named",
            hint="name it with --target",
        )
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise UsageError(
            "counting a corpus needs the tokenizers package", hint="pip install 'eyas[train]'"
        ) from None
    file = target.directory / "tokenizer.json"
    if not file.is_file():
        raise UsageError(f"{file} is not there", hint="name a target with its tokenizer.json")
    return Tokenizer.from_str(_read(file))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {reason_of(error)}", hint="check the path"
        ) from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is no text in UTF-8", hint="convert it to UTF-8") from None
