"""Which causes are right for which planted fault, and the count of right diagnoses."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

SINGLE, PAIR, SOUND, STORY = "single", "pair", "sound", "story"
SLIGHT = "slight"  # a fault that costs less than what counts as one: told, and not held to a floor
FLOORS = {SINGLE: 0.95, PAIR: 0.90, SOUND: 1.0, STORY: 1.0, SLIGHT: 0.0}
NOT_ONE = "none"

# One id for a kind, but for those of which two are the same fact.
RIGHT: Mapping[str, tuple[str, ...]] = {
    "layer-of-a-newer-engine": ("layer-lost",),
    "layer-under-a-strange-name": ("layer-lost",),
    "matrix-missing": ("matrix-lost",),
    "norm-missing": ("norm-lost",),
    "fusion-missing": ("fusion-lost",),
    "head-missing": ("head-lost",),
    "map-missing": ("map-lost",),
    "launched-as-eagle": ("fusion-bypassed",),
    "launched-by-method-eagle": ("fusion-bypassed",),
    "states-switched-off": ("fusion-bypassed",),
    "ids-off-by-a-convention": ("boundaries",),
    "ids-of-another-recipe": ("boundaries",),
    "ids-absent": ("boundaries",),
    "ids-taken-by-the-old-runner": ("boundaries",),
    "states-in-another-order": ("boundaries",),
    # the engine refuses it, for the list and fc do not fit
    "one-state-too-many": ("boundaries", "refused"),
    "residual-flipped": ("residual",),
    "feedback-flipped": ("feedback",),
    "norms-before-fusion": ("norms",),
    "norms-exchanged": ("norms-swapped",),
    "epsilon-of-another-scale": ("norms",),
    "theta-of-another-model": ("rope",),
    "scaling-never-trained": ("rope",),
    "heads-of-another-width": ("heads",),
    "map-of-ids": ("map-absolute",),
    "map-of-own-indices": ("map-wrong",),
    # zeros are what an engine has where there is no map
    "map-of-zeros": ("map-wrong", "map-lost"),
    "map-of-another-drafter": ("map-wrong",),
    # rows of the head and ids of the map, one of them permuted: the same function
    "map-rolled": ("map-wrong", "head-rows"),
    "map-in-another-order": ("map-wrong", "head-rows"),
    "head-rows-in-another-order": ("head-rows", "map-wrong"),
    "head-tied": ("head-tied",),
    # an embedding of noise or zeros is named by its numbers or by its part
    "embedding-at-init": ("embedding-wrong", "weights-at-init"),
    "embedding-of-zeros": ("embedding-wrong", "weights-zero"),
    "embedding-of-another-target": ("embedding-wrong",),
    "matrix-of-zeros": ("weights-zero",),
    "matrix-not-finite": ("weights-nan",),
    "matrix-at-init": ("weights-at-init",),
    "rows-repeated": ("weights-repeated",),
    "rows-in-llamacpp-order": ("rows-permuted",),
    "gate-and-up-exchanged": ("gate-up-swapped",),
    "key-and-value-exchanged": ("kv-swapped",),
    "barely-trained": ("weak-drafter",),
    "file-of-an-earlier-day": ("stale-file",),
    "scales-left-behind": ("unscaled",),
    "depth-of-the-target": ("depth",),
    "fewer-heads": ("heads", "shapes"),  # the number of heads is a size against the tensors
    "narrower-inside": ("shapes",),
    # the engine refuses these, for this reason
    "vocabulary-of-the-target": ("shapes", "refused"),
    "class-nobody-knows": ("architecture", "refused"),
    "class-of-the-target": ("architecture", "refused"),
}

Outcome = Mapping[str, Any]


def right(kinds: Sequence[str], causes: Sequence[str]) -> bool:
    """Whether the diagnosis `causes`, most likely first, names what was planted.

    One fault must be first, two among the first two. Of a sound drafter nothing may be blamed.
    """
    if not kinds:
        return not blamed(causes)
    first = causes[: len(kinds)]
    return all(any(cause in RIGHT[kind] for cause in first) for kind in kinds)


def blamed(causes: Sequence[str]) -> list[str]:
    """The causes that are ones."""
    return [cause for cause in causes if cause != NOT_ONE]


def shares(outcomes: Iterable[Outcome]) -> dict[str, tuple[int, int]]:
    """For each sort of drafter, how many were diagnosed rightly, and of how many."""
    counts: dict[str, list[bool]] = defaultdict(list)
    for outcome in outcomes:
        counts[outcome["sort"]].append(right(outcome["kinds"], outcome["causes"]))
    return {sort: (sum(met), len(met)) for sort, met in counts.items()}


def below_floor(outcomes: Sequence[Outcome]) -> list[str]:
    """The sorts of drafter that are diagnosed less well than they must be."""
    found = shares(outcomes)
    return [sort for sort, (met, all_) in found.items() if met < FLOORS[sort] * all_]


def table(outcomes: Sequence[Outcome]) -> str:
    """Scores, the confusion of planted kind and first cause, and every miss."""
    lines = []
    for sort, (met, all_) in shares(outcomes).items():
        floor = f"floor {FLOORS[sort]:.0%}"
        lines.append(f"{sort:8} {met:4} of {all_:4}  {met / all_:6.1%}  {floor}")
    if outcomes:
        seconds = [outcome["seconds"] for outcome in outcomes]
        used = median(outcome["cpu_seconds"] for outcome in outcomes)
        lines.append(
            f"median {median(seconds):.1f} s, longest {max(seconds):.1f} s;"
            f" median {used:.1f} s of processor"
        )
    lines += ["", "planted alone → first cause"]
    confusion: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        if outcome["sort"] == SINGLE:
            first = outcome["causes"][0] if outcome["causes"] else NOT_ONE
            confusion[outcome["kinds"][0]][first] += 1
    for kind in sorted(confusion):
        said = ", ".join(
            f"{cause} {count}{'' if cause in RIGHT[kind] else ' ✗'}"
            for cause, count in confusion[kind].most_common()
        )
        lines.append(f"  {kind:30} {said}")
    missed = [o for o in outcomes if not right(o["kinds"], o["causes"])]
    lines += ["", f"{len(missed)} missed"]
    for outcome in missed:
        planted = " + ".join(outcome["kinds"]) or outcome["variation"]
        said = ", ".join(outcome["causes"][:4]) or "no cause"
        where = f"{outcome['base']} {outcome['form']} {outcome['ref']}"
        lines.append(f"  {outcome['index']:4} {outcome['sort']:7} {planted} ({where}): {said}")
    return "\n".join(lines)
