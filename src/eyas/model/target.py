"""What the rest of eyas asks of a target model.

Shape letters used in this package: B batch, T new tokens, S cache slots, H hidden width,
C concatenated captured width (number of boundaries times H), V vocabulary, D head width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFacts:
    """What drafting and training need to know of a target that is in memory.

    What its config alone declares is `eyas.checkpoint.TargetFacts`.
    """

    name: str
    directory: Path
    architecture: str
    hidden_size: int
    num_layers: int
    vocab_size: int
    eos_ids: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSizes:
    """The sizes of a target's decoder layer, which a fresh drafter takes over."""

    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    rms_eps: float
    rope_theta: float
    max_positions: int


class TargetCache(ABC):
    """Keys and values of the tokens seen so far."""

    @property
    @abstractmethod
    def length(self) -> int:
        """How many slots hold a token."""

    @abstractmethod
    def rollback(self, length: int) -> None:
        """Forget everything after the first `length` slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One forward pass: the residual stream after the last layer, and the captured boundaries.

    `final_BTH` is before the final norm; `captured_BTC` concatenates the asked boundaries in the
    order asked for, and is None when none was asked.
    """

    final_BTH: Tensor
    captured_BTC: Tensor | None

    def first(self, tokens: int) -> Reading:
        """The reading of the first `tokens` positions."""
        captured = None if self.captured_BTC is None else self.captured_BTC[:, :tokens]
        return Reading(final_BTH=self.final_BTH[:, :tokens], captured_BTC=captured)


class Target(ABC):
    """A causal language model read at its boundaries.

    Boundary k is the residual stream entering decoder layer k: 0 is the embeddings, and
    `facts.num_layers` is after the last layer, before the final norm.
    """

    facts: LoadedFacts
    sizes: TargetSizes | None  # None where the decoder layer is not of the common kind

    @property
    @abstractmethod
    def embedding_VH(self) -> Tensor:
        """The input embedding table."""

    @property
    @abstractmethod
    def head_VH(self) -> Tensor:
        """The rows of the output head."""

    @property
    @abstractmethod
    def final_norm_H(self) -> Tensor:
        """The gain of the final norm."""

    @abstractmethod
    def new_cache(self, batch: int, capacity: int) -> TargetCache:
        """An empty cache for `batch` rows of at most `capacity` tokens."""

    @abstractmethod
    def forward(
        self, ids_BT: Tensor, cache: TargetCache, boundaries: Sequence[int] = ()
    ) -> Reading:
        """Append `ids_BT` to the cache and read the new positions."""

    @abstractmethod
    def normed(self, final_BTH: Tensor) -> Tensor:
        """The final norm: what the head multiplies."""

    def logits(self, final_BTH: Tensor) -> Tensor:
        """The target's logits, [B, T, V], of a `Reading`'s final states."""
        return torch.nn.functional.linear(self.normed(final_BTH), self.head_VH)
