"""What a dialect can do. Each module in this package that DIALECTS lists is one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, Protocol

from eyas.checkpoint import Checkpoint
from eyas.spec import DraftSpec

# The tensors that map the drafter's token ids to the target's: the map and a mask of the ids kept,
# the map alone, or neither where a drafter always has the target's whole vocabulary.
Maps = Literal["d2t+t2d", "d2t", "none"]


class Dialect(Protocol):
    """A producer's way of writing a drafter. Modules serve as instances."""

    @property
    def name(self) -> str:
        """The dialect's name, as ``eyas inspect`` prints it."""

    def keys(self, checkpoint: Checkpoint) -> Mapping[str, frozenset[str]]:
        """The keys of the config that it reads, by their section; ``""`` is the top."""

    def recognise(self, checkpoint: Checkpoint) -> str | None:
        """Why `checkpoint` is of this dialect; None when it is not."""

    def read(self, checkpoint: Checkpoint) -> DraftSpec:
        """The drafter as its producer's code computes it; CheckpointError if facts are missing."""

    def roles(self, checkpoint: Checkpoint) -> Mapping[str, str]:
        """Tensor name → role, its name in `model.Drafter`. A surplus tensor has no role."""

    def write(
        self, spec: DraftSpec, roles_present: Collection[str]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """A config, and role → tensor name; ConversionError for what the dialect cannot state."""


class Writable(Dialect, Protocol):
    """A dialect that is written too, and not only read."""

    @property
    def maps(self) -> Maps:
        """The vocabulary maps that its files hold. A t2d beyond them gets no name from `write`."""

    @property
    def sorted_map(self) -> bool:
        """Whether its code slices the target's logits by t2d, and so takes rows as ascending ids.

        A map that is not sorted drafts the same there, and trains on with the wrong labels.
        """

    def write(
        self,
        spec: DraftSpec,
        roles_present: Collection[str],
        *,
        dtype: str | None = None,
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """A config, and role → tensor name; ConversionError for what the dialect cannot state.

        `dtype` is torch's name of the type that all weights share.
        """
