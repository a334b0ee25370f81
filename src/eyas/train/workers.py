"""One update's gradient on several cores: a thread for each part of the batch.

Most products of a small drafter are too small to share out between threads, so whole examples are:
each worker has a replica of its own and runs forward and backward on its part, and the gradients
are added up in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import TypeVar

import torch
from torch import Tensor

from eyas.model.drafter import Drafter

Part = TypeVar("Part")
Scores = TypeVar("Scores")


class Workers:
    """As many replicas of a drafter as there are workers; the first is the drafter itself."""

    def __init__(self, drafter: Drafter, count: int) -> None:
        self._replicas = [drafter, *(deepcopy(drafter) for _ in range(count - 1))]
        self._pool = ThreadPoolExecutor(count)

    def __len__(self) -> int:
        """Number of workers."""
        return len(self._replicas)

    def parts(self, examples: Sequence[int]) -> list[list[int]]:
        """The examples of a batch dealt out, at most one part a worker and none of them empty."""
        dealt = [list(examples[first :: len(self)]) for first in range(len(self))]
        return [part for part in dealt if part]

    def gradients(
        self,
        parts: Sequence[Part],
        backward: Callable[[Drafter, Part], Scores],
    ) -> list[Scores]:
        """What `backward` returns of each part; the drafter's gradients are the sum of its calls'.

        `backward` is given a drafter and a part, and leaves gradients in the drafter's parameters.
        """
        first, *others = self._replicas[: len(parts)]
        weights: list[Tensor] = list(first.parameters())
        for replica in others:
            with torch.no_grad():
                torch._foreach_copy_([*replica.parameters()], weights)
        for replica in (first, *others):
            replica.zero_grad(set_to_none=True)
        results = list(self._pool.map(backward, (first, *others), parts))
        for replica in others:
            torch._foreach_add_(_gradients(weights), _gradients(replica.parameters()))
        return results

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def _gradients(weights: Iterable[Tensor]) -> list[Tensor]:
    gradients = [weight.grad for weight in weights]
    return [gradient for gradient in gradients if gradient is not None]
