"""The target's hidden states of answered conversations: what the drafter is trained on.

A shard is one safetensors file: `ids` [N], `captured` [N, C] (the boundaries concatenated),
`final` [N, H] (after the final norm: times the head's rows it is the teacher), and per
conversation its `lengths` and `prompt_lengths`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from eyas.data.conversation import Conversation, read_shard, shard_files
from eyas.errors import UsageError
from eyas.model.target import Target

TOKENS_PER_FORWARD = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One conversation with its states: ids [T], captured [T, C], final [T, H]."""

    ids_T: Tensor
    captured_TC: Tensor
    final_TH: Tensor
    prompt_length: int

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.ids_T)


class StateStore:
    """The examples of one or more directories of state shards, mapped from disk."""

    def __init__(self, directories: Sequence[Path]) -> None:
        from safetensors.torch import load_file

        self._shards: list[dict[str, Tensor]] = []
        self._places: list[tuple[int, int, int, int]] = []
        for directory in directories:
            files = sorted(directory.glob("states-*.safetensors"))
            if not files:
                raise UsageError(f"`{directory}` holds no states-*.safetensors")
            for file in files:
                self._index(load_file(file))

    def __len__(self) -> int:
        """Number of examples."""
        return len(self._places)

    def length(self, index: int) -> int:
        """Number of tokens of an example."""
        return self._places[index][2]

    def __getitem__(self, index: int) -> Example:
        """One example, as views of the mapped files."""
        shard, begin, length, prompt_length = self._places[index]
        held, rows = self._shards[shard], slice(begin, begin + length)
        return Example(
            ids_T=held["ids"][rows],
            captured_TC=held["captured"][rows],
            final_TH=held["final"][rows],
            prompt_length=prompt_length,
        )

    def digest(self) -> str:
        """Of every example's length and ids, in order: what tells one training set from another."""
        hashed = hashlib.sha256()
        for shard in self._shards:
            for name in ("lengths", "prompt_lengths", "ids"):
                hashed.update(shard[name].to(torch.int64).numpy().tobytes())
        return hashed.hexdigest()

    def _index(self, shard: dict[str, Tensor]) -> None:
        begin = 0
        lengths, prompts = shard["lengths"].tolist(), shard["prompt_lengths"].tolist()
        for length, prompt_length in zip(lengths, prompts, strict=True):
            self._places.append((len(self._shards), begin, length, prompt_length))
            begin += length
        self._shards.append(shard)


def capture_directory(
    target: Target,
    boundaries: Sequence[int],
    answers: Path,
    directory: Path,
    progress: Callable[[Path, int], None],
) -> None:
    """One state shard for every answer shard; a shard that exists is kept."""
    from safetensors.torch import save_file

    directory.mkdir(parents=True, exist_ok=True)
    metadata = {
        "target": target.facts.name,
        "boundaries": ",".join(str(boundary) for boundary in boundaries),
    }
    for answered in shard_files(answers):
        file = directory / f"states-{answered.stem.removeprefix('answers-')}.safetensors"
        if file.exists():
            continue
        shard = capture(target, boundaries, read_shard(answered))
        unfinished = file.with_suffix(f".{os.getpid()}.unfinished")
        save_file(shard, unfinished, metadata=metadata)
        unfinished.replace(file)
        progress(file, len(shard["ids"]))


def capture(
    target: Target, boundaries: Sequence[int], conversations: Sequence[Conversation]
) -> dict[str, Tensor]:
    """The tensors of one state shard, in the order of `conversations`."""
    order = sorted(range(len(conversations)), key=lambda index: len(conversations[index].ids))
    states: dict[int, tuple[Tensor, Tensor]] = {}
    while order:
        rows = [order.pop()]  # the longest left; shorter ones are padded to it on the right
        longest = len(conversations[rows[0]].ids)
        while order and (len(rows) + 1) * longest <= TOKENS_PER_FORWARD:
            rows.append(order.pop())
        ids_BT = torch.zeros(len(rows), longest, dtype=torch.int64)
        for row, index in enumerate(rows):
            ids = conversations[index].ids
            ids_BT[row, : len(ids)] = torch.tensor(ids)
        reading = target.forward(ids_BT, target.new_cache(len(rows), longest), boundaries)
        normed_BTH = target.normed(reading.final_BTH)
        assert reading.captured_BTC is not None
        for row, index in enumerate(rows):
            length = len(conversations[index].ids)
            states[index] = (reading.captured_BTC[row, :length], normed_BTH[row, :length])
    return {
        "ids": torch.tensor([token for c in conversations for token in c.ids]),
        "captured": torch.cat([states[index][0] for index in range(len(conversations))]),
        "final": torch.cat([states[index][1] for index in range(len(conversations))]),
        "lengths": torch.tensor([len(c.ids) for c in conversations]),
        "prompt_lengths": torch.tensor([c.prompt_length for c in conversations]),
    }
