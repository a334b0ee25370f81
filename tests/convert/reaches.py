"""What each dialect can say of a drafter, fact by fact, and drafters that two of them can say.

Written from what the producers' code computes, apart from the writers' own tables: a writer that
refuses too much, and so makes no drafter common to two dialects, is then seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

Facts = Mapping[str, Any]
Reach = Mapping[str, tuple[Any, ...]]

# The captured states by name: None are the default ones.
STATES: dict[str, tuple[int, ...] | None] = {
    "default": None,
    "three": (1, 3, 7),
    "two": (2, 6),
    "five": (1, 2, 4, 5, 8),
    "embeddings": (0, 4, 6),
    "descending": (7, 4, 1),
}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 64}
YARN = {"factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 32.0}
YARN |= {"beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 0.0}
# Kind and base, and the numbers of the scaling.
ROPES: dict[str, tuple[str, float, dict[str, float]]] = {
    "default": ("default", 500000.0, {}),
    "stretched": ("linear", 10000.0, {"factor": 2.5}),
    "stretched, another base": ("linear", 500000.0, {"factor": 4.0}),
    "dynamic": ("dynamic", 10000.0, {"factor": 2.0}),
    "llama3": ("llama3", 500000.0, LLAMA3),
    "yarn": ("yarn", 10000.0, YARN),
}
OWN, TARGET, TIED = "own", "target", "tied"
OWNERS = ((OWN, OWN), (TARGET, OWN), (TARGET, TARGET), (OWN, TIED))  # embedding and head

EVERY: Reach = {
    "states": tuple(STATES),
    "norm before fc": ("none", "all", "each", "both"),
    "bias of fc": (False, True),
    "attention": ("plain", "qkv", "qkvo", "normed", "normed qkvo", "latent"),
    "layers": ("one", "input_layernorm", "hidden_norm"),
    "width": ("same", "other"),
    "normed residual": (False, True),
    "normed feedback": (False, True),
    "vocabulary": ("whole", "reduced", "prefix", "mapped whole"),
    "owners": OWNERS,
    "rope": tuple(ROPES),
    "activation": ("silu", "gelu"),
    "positions": (None, 512),
}
_BARE: Reach = EVERY | {
    "states": ("default",),
    "norm before fc": ("none",),
    "bias of fc": (False,),
    "attention": ("plain",),
    "layers": ("one",),
    "width": ("same",),
    "normed residual": (False,),
    "normed feedback": (False,),
    "vocabulary": ("whole", "reduced", "prefix"),
    "owners": ((OWN, OWN),),
}
_EAGLE: Reach = _BARE | {
    # a map of a whole vocabulary is stored, and does nothing where it is sorted
    "vocabulary": EVERY["vocabulary"],
    "width": ("same", "other"),
    "owners": ((OWN, OWN), (TARGET, OWN)),
    "rope": ("default", "stretched", "dynamic"),
}
_LATER: dict[str, Any] = {"states": ("default", "three", "two", "five")}
_THREE: dict[str, Any] = {"states": ("default", "three")}
_MODELOPT: Reach = _BARE | _LATER
_TORCHSPEC: Reach = _BARE | {
    **_LATER,
    "norm before fc": ("none", "each"),
    "width": ("same", "other"),
    "normed feedback": (False, True),
    "rope": ("default", "stretched", "dynamic", "llama3", "yarn"),
}

# Each dialect has one or more forms; a drafter must be wholly within one of them.
EAGLE3: dict[str, tuple[Reach, ...]] = {
    "specforge": (EVERY | {"attention": ("plain", "qkv", "qkvo", "latent")},),
    "speculators": (
        EVERY
        | {
            "bias of fc": (False,),
            "attention": ("plain", "qkv", "qkvo", "normed", "normed qkvo"),
            "layers": ("one", "input_layernorm"),
        },
    ),
    "eagle": (_EAGLE,),
    "angelslim": (_EAGLE | {"states": ("default", "three", "descending"), "width": ("same",)},),
    "modelopt": (
        _MODELOPT
        | {
            "attention": ("plain", "qkvo", "latent"),
            "layers": ("one", "input_layernorm"),
            "owners": ((TARGET, OWN), (TARGET, TARGET)),
        },
        _MODELOPT | {"layers": ("one", "hidden_norm"), "owners": ((OWN, OWN),)},
    ),
    "torchspec": (_TORCHSPEC, _TORCHSPEC | _THREE | {"attention": ("latent",)}),
    "automodel": (
        _BARE
        | {
            "norm before fc": ("none", "each"),
            "attention": ("plain", "qkvo"),
            "width": ("same", "other"),
            "normed feedback": (False, True),
            "rope": ("default", "llama3"),
        },
    ),
    "deepspec": (
        _BARE
        | {
            "states": ("five",),
            "attention": ("normed", "normed qkvo"),
            "vocabulary": ("whole",),
        },
    ),
    "dflash": (),
    "gguf": (
        EVERY
        | {
            "states": ("default", "three", "embeddings", "descending"),
            "norm before fc": ("none", "all"),
            "bias of fc": (False,),
            "attention": ("plain",),
            "layers": ("one",),
            "normed feedback": (False,),
            "vocabulary": ("whole", "reduced", "mapped whole"),
            "owners": ((OWN, OWN), (TARGET, OWN), (TARGET, TARGET)),
            "rope": ("default", "stretched", "stretched, another base", "llama3", "yarn"),
            "activation": ("silu",),
            "positions": (512,),
        },
    ),
}
_PARALLEL: Reach = _BARE | _THREE | {"layers": ("one", "input_layernorm"), "width": EVERY["width"]}
PEAGLE: dict[str, tuple[Reach, ...]] = {
    "specforge": (
        _PARALLEL
        | {
            "normed residual": (False, True),
            "normed feedback": (False, True),
            "vocabulary": EVERY["vocabulary"],
            "rope": ("default",),
        },
    ),
    "speculators": EAGLE3["speculators"],
    "automodel": (EAGLE3["automodel"][0] | {"layers": ("one", "input_layernorm")},),
}


def common(one: tuple[Reach, ...], other: tuple[Reach, ...]) -> list[Reach]:
    """What lies within both, form by form."""
    found = []
    for mine in one:
        for theirs in other:
            both = {f: tuple(v for v in EVERY[f] if v in mine[f] and v in theirs[f]) for f in EVERY}
            if all(both.values()):
                found.append(both)
    return found


def covering(reach: Reach, random: Random, least: int = 1) -> Iterator[Facts]:
    """Drafters within `reach` that have each value of each fact at least once, else at random."""
    values = {fact: random.sample(choices, len(choices)) for fact, choices in reach.items()}
    for i in range(max(least, *(len(choices) for choices in values.values()))):
        facts = {fact: choices[i % len(choices)] for fact, choices in values.items()}
        yield _sensible(facts, reach, random)


def _sensible(facts: dict[str, Any], reach: Reach, random: Random) -> Facts:
    """`facts` with other owners where its vocabulary and width do not allow those that it has.

    The target's matrices have the target's width, a head that is lent or tied has all rows, and a
    drafter without a map of its reduced vocabulary has its own. Where `reach` has no owners that
    are allowed, width and vocabulary give way.
    """

    def allowed(owners: tuple[str, str]) -> bool:
        narrow = facts["width"] == "other" and TARGET in owners
        return not narrow and (facts["vocabulary"] == "whole" or owners[1] == OWN)

    if not allowed(facts["owners"]):
        others = [owners for owners in reach["owners"] if allowed(owners)]
        if others:
            facts["owners"] = random.choice(others)
        else:
            facts |= {"width": "same", "vocabulary": "whole"}
    return facts
