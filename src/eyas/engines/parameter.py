"""Parameter: one parameter of an engine's model, and how its loader treats a wrong size."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import prod

from eyas.spec import Initialisation


class Fit(StrEnum):
    """What a loader does with a tensor whose shape is not the parameter's."""

    EXACT = "exact"  # raises
    ROWS = "rows"  # split over output rows: cuts what is too long
    COLUMNS = "columns"  # split over input columns: cuts what is too wide
    VOCABULARY = "vocabulary"  # rows are token ids, padded to a multiple of 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of a parameter that one tensor of the checkpoint fills.

    `key` tells the parts of a fused parameter apart; `role` is the drafter's name for the matrix;
    `pads` says that a tensor which is too small is completed with zeros instead of refused.
    """

    rows: int
    role: str | None
    key: str | None = None
    pads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter as its parts in row order.

    `width` is the shape of one row. `padding` counts rows after the parts that belong to no
    token; they are zeros once a tensor has been loaded.
    """

    name: str
    parts: tuple[Part, ...]
    width: tuple[int, ...]
    fit: Fit
    initialisation: Initialisation
    padding: int = 0

    @property
    def rows(self) -> int:
        """All rows, padding included."""
        return sum(part.rows for part in self.parts) + self.padding

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as allocated."""
        return (self.rows, *self.width)

    @property
    def row_elements(self) -> int:
        """The number of elements of one row."""
        return prod(self.width)


def whole(
    name: str,
    shape: tuple[int, ...],
    role: str | None,
    *,
    fit: Fit = Fit.EXACT,
    initialisation: Initialisation = Initialisation.MEMORY,
    pads: bool = False,
) -> Parameter:
    """A parameter that a single tensor fills."""
    return Parameter(
        name=name,
        parts=(Part(rows=shape[0], role=role, pads=pads),),
        width=shape[1:],
        fit=fit,
        initialisation=initialisation,
    )


def norm(name: str, size: int, role: str | None) -> Parameter:
    """An RMSNorm's gain: ones until it is loaded."""
    return whole(name, (size,), role, initialisation=Initialisation.ONES)


_VOCABULARY_PADDING = 64


def vocabulary(name: str, tokens: int, hidden_size: int, role: str | None) -> Parameter:
    """An embedding or a head of `tokens` rows, padded as both engines pad them.

    vLLM 0.32.0, vllm/model_executor/layers/vocab_parallel_embedding.py and SGLang's copy of it
    round the rows up to a multiple of 64.
    """
    return Parameter(
        name=name,
        parts=(Part(rows=tokens, role=role),),
        width=(hidden_size,),
        fit=Fit.VOCABULARY,
        initialisation=Initialisation.MEMORY,
        padding=-tokens % _VOCABULARY_PADDING,
    )
