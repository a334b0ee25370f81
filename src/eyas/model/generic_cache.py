"""The keys and values of a transformers model, kept so that any of them can be forgotten."""

from __future__ import annotations

from typing import Any

from eyas.errors import TargetError, UnsupportedError
from eyas.model.target import TargetCache


class GenericCache(TargetCache):
    """A transformers DynamicCache in which every layer keeps all of its slots.

    transformers lets a sliding-window layer drop what has left the window, and what is dropped
    cannot come back when drafts are rejected. Such layers get a full-length cache here: the mask
    is made from positions, so attention still sees the window alone.
    """

    def __init__(self, config: Any, capacity: int) -> None:
        from transformers import DynamicCache

        self.held = DynamicCache(config=config)
        self.held.layers = [_croppable(layer, config) for layer in self.held.layers]
        self.capacity = capacity

    @property
    def length(self) -> int:
        """How many slots hold a token."""
        return int(self.held.get_seq_length())

    def rollback(self, length: int) -> None:
        """Forget everything after the first `length` slots."""
        surplus = self.length - length
        if not 0 <= length <= self.length:
            raise TargetError(f"cannot roll a cache of {self.length} tokens back to {length}")
        if surplus:
            # a negative count is what to remove; transformers 5.24 takes no other
            self.held.crop(-surplus)


def _croppable(layer: Any, config: Any) -> Any:
    """`layer`, or the full-length cache that does the same; UnsupportedError where none does."""
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    if type(layer) is DynamicSlidingWindowLayer:
        return DynamicLayer()
    if type(layer) is DynamicLayer:
        return layer
    raise UnsupportedError(
        f"a target of type `{config.model_type}` keeps a `{type(layer).__name__}`, whose state "
        "cannot be rolled back when drafts are rejected"
    )
