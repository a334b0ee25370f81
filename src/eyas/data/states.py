"""The target's hidden states of answered conversations: what the drafter is trained on.

A shard is one safetensors file: `ids` [N], `captured` [N, C] (the boundaries concatenated),
`final` [N, H] (after the final norm: times the head's rows it is the teacher), and per
conversation its `lengths` and `prompt_lengths`. Its metadata hold their `origin`, the target and
the boundaries, as JSON: states of another target or of other boundaries are never mixed in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from eyas.checkpoint import whole_file
from eyas.data.conversation import Conversation, read_shard, shard_files
from eyas.decode.prefill import read_prompt
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Whose states a shard holds, and at which boundaries."""

    target: str
    boundaries: tuple[int, ...]

    def metadata(self) -> dict[str, str]:
        """What a shard's file says of it.

        One entry, for safetensors writes several in an order of chance, and a shard that is made
        again is to be the same file.
        """
        return {"origin": json.dumps({"target": self.target, "boundaries": self.boundaries})}

    @classmethod
    def of(cls, file: Path) -> Origin:
        """What `file` says; UsageError when it cannot be read or says nothing."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(file, framework="pt") as shard:
                held = json.loads((shard.metadata() or {})["origin"])
            boundaries = tuple(int(number) for number in held["boundaries"])
            return cls(target=str(held["target"]), boundaries=boundaries)
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise UsageError(f"`{file}` is no shard of states: {error!r}") from error

    def __str__(self) -> str:
        """The form of a message."""
        return f"`{self.target}` at {', '.join(map(str, self.boundaries))}"


class StateStore:
    """The examples of one or more directories of state shards, mapped from disk.

    Raises UsageError for a directory without any, and for states of more than one `Origin`.
    """

    origin: Origin

    def __init__(self, directories: Sequence[Path]) -> None:
        from safetensors.torch import load_file

        self._shards: list[dict[str, Tensor]] = []
        self._places: list[tuple[int, int, int, int]] = []
        self._directories: list[int] = []
        for number, directory in enumerate(directories):
            files = sorted(directory.glob("states-*.safetensors"))
            if not files:
                raise UsageError(
                    f"`{directory}` holds no states-*.safetensors",
                    hint="give the directory that the states were captured into",
                )
            for file in files:
                found = Origin.of(file)
                if not self._shards:
                    self.origin = found
                if found != self.origin:
                    raise UsageError(
                        f"`{file}` holds states of {found}, the shards before it of {self.origin}",
                        hint="give directories of one target and one choice of boundaries",
                    )
                self._index(load_file(file))
                self._directories += [number] * (len(self._places) - len(self._directories))

    def __len__(self) -> int:
        """Number of examples."""
        return len(self._places)

    def length(self, index: int) -> int:
        """Number of tokens of an example."""
        return self._places[index][2]

    def prompt_length(self, index: int) -> int:
        """Number of tokens of an example's prompt."""
        return self._places[index][3]

    def directory(self, index: int) -> int:
        """Which of the directories an example comes from, counted from 0."""
        return self._directories[index]

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
    unless: Callable[[Conversation], bool] = lambda _: False,
) -> None:
    """One state shard for every answer shard; a shard that exists is kept.

    Conversations of which `unless` is true are left out.
    Raises UsageError when one that exists is of another target, boundaries or answers.
    """
    from safetensors.torch import save

    directory.mkdir(parents=True, exist_ok=True)
    origin = Origin(target=target.facts.name, boundaries=tuple(boundaries))
    for answered in shard_files(answers):
        file = directory / f"states-{answered.stem.removeprefix('answers-')}.safetensors"
        conversations = [c for c in read_shard(answered) if not unless(c)]
        if file.exists():
            _check_kept(file, origin, conversations)
            continue
        shard = capture(target, boundaries, conversations)
        # save_file writes a hidden file of its own first, which a kill would leave for good
        with whole_file(file) as unfinished:
            unfinished.write_bytes(save(shard, metadata=origin.metadata()))
        progress(file, len(shard["ids"]))


def _check_kept(file: Path, origin: Origin, conversations: Sequence[Conversation]) -> None:
    from safetensors import safe_open

    found = Origin.of(file)
    hint = "give another directory, or remove this one"
    if found != origin:
        raise UsageError(f"`{file}` holds states of {found}, not of {origin}", hint=hint)
    with safe_open(file, framework="pt") as shard:
        lengths, ids = shard.get_tensor("lengths"), shard.get_tensor("ids")
    said = [token for conversation in conversations for token in conversation.ids]
    if lengths.tolist() != [len(c.ids) for c in conversations] or ids.tolist() != said:
        raise UsageError(f"`{file}` holds states of other answers", hint=hint)


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
        ids_BT = ids_BT.to(target.embedding_VH.device)
        cache = target.new_cache(len(rows), longest)
        reading = read_prompt(target, ids_BT, cache, boundaries)
        normed_BTH = target.normed(reading.final_BTH)
        assert reading.captured_BTC is not None
        for row, index in enumerate(rows):
            length = len(conversations[index].ids)
            captured_TC = reading.captured_BTC[row, :length].cpu()
            states[index] = (captured_TC, normed_BTH[row, :length].cpu())
    return {
        "ids": torch.tensor([token for c in conversations for token in c.ids]),
        "captured": torch.cat([states[index][0] for index in range(len(conversations))]),
        "final": torch.cat([states[index][1] for index in range(len(conversations))]),
        "lengths": torch.tensor([len(c.ids) for c in conversations]),
        "prompt_lengths": torch.tensor([c.prompt_length for c in conversations]),
    }
