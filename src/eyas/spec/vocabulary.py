"""How a drafter's token ids become the target's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum


class VocabMap(StrEnum):
    """The form of the map from draft ids to target ids.

    The numbers themselves are a tensor of the checkpoint; the form says how to read them.
    """

    IDENTITY = "identity"  # the draft vocabulary is the target's
    OFFSETS = "offsets"  # target id = i + d2t[i]
    ABSOLUTE = "absolute"  # target id = d2t[i]
    PREFIX = "prefix"  # no map although the vocabularies differ: draft ids are used as they are


class VocabOrder(StrEnum):
    """The order in which the map lists the target's ids.

    It changes no draft. A tool that rebuilds the map from a mask of kept ids, as EAGLE, SpecForge
    and speculators make it, would give the rows of an unsorted head other tokens.
    """

    SORTED = "sorted"
    UNSORTED = "not sorted"  # ModelOpt lists the most frequent first


class Ownership(StrEnum):
    """Whose matrix an embedding or a head is."""

    OWN = "own"  # the drafter's own tensor
    TARGET = "target"  # the target's matrix
    TIED = "tied"  # the head is the drafter's embedding


def most_counted(
    counts: Mapping[int, float], *, among: Iterable[int], size: int, always: Iterable[int] = ()
) -> tuple[int, ...]:
    """The `size` ids of `among` that are counted most, in ascending order, `always` first of all.

    Of equal counts the lower id is taken.
    """
    candidates = set(among)
    forced = sorted(candidates & set(always))
    rest = sorted(candidates - set(forced), key=lambda token: (-counts.get(token, 0.0), token))
    return tuple(sorted([*forced, *rest][:size]))
