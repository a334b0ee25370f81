"""An answered conversation as token ids, and its shard files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from eyas.checkpoint import whole_file
from eyas.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Token ids of a prompt and its answer; the answer starts at `prompt_length`."""

    id: str
    category: str
    ids: tuple[int, ...]
    prompt_length: int
    temperature: float

    @property
    def answer_ids(self) -> tuple[int, ...]:
        """The ids that the target wrote."""
        return self.ids[self.prompt_length :]


def write_shard(file: Path, conversations: Iterable[Conversation]) -> None:
    """Write a shard, whole or not at all."""
    with whole_file(file) as unfinished, unfinished.open("w", encoding="utf-8") as out:
        for conversation in conversations:
            out.write(json.dumps(asdict(conversation)) + "\n")


def read_shard(file: Path) -> list[Conversation]:
    """The conversations of one shard."""
    try:
        records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return [
            Conversation(
                id=record["id"],
                category=record["category"],
                ids=tuple(record["ids"]),
                prompt_length=record["prompt_length"],
                temperature=record["temperature"],
            )
            for record in records
        ]
    except (OSError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise UsageError(f"`{file}` is no shard of answers: {error!r}") from error


def shard_files(directory: Path) -> list[Path]:
    """The finished shards of a directory, in order; UsageError when there is none."""
    files = sorted(directory.glob("answers-*.jsonl"))
    if not files:
        raise UsageError(f"`{directory}` holds no answers-*.jsonl")
    return files


def read_conversations(directory: Path) -> Iterator[Conversation]:
    """Every conversation of a directory of shards."""
    for file in shard_files(directory):
        yield from read_shard(file)
