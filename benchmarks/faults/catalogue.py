"""All kinds of fault, and which of them can lie in one drafter without hiding one another."""

from __future__ import annotations

from benchmarks.faults import arithmetic, conditioning, contents, names, sizes, vocabulary
from benchmarks.faults.kind import Kind, Part, Sign

KINDS: tuple[Kind, ...] = (
    *names.KINDS,
    *conditioning.KINDS,
    *arithmetic.KINDS,
    *vocabulary.KINDS,
    *contents.KINDS,
    *sizes.KINDS,
)

# What is left out, and why.
LEFT_OUT = {
    "K14": "coverage of the draft vocabulary: a property of the traffic",
    "K15": "another tokenizer: another target, not another drafter",
    "K18": "shorter max_position_embeddings: nothing changes below that length",
    "K19": "a token shift: a drafter must be trained on it, it cannot be planted in files",
    "K20": "windows: nothing changes below their length",
    "K22": "fields of parallel drafting: of no EAGLE-3 drafter that drafts in a chain",
    "K25": "a quantised or rotated target: not in the drafter's files or launch",
    "K27-K29": "loss mask, template, objective: these make a weak drafter, as K31 does",
    "K32": "a fine-tuned target: not in the drafter's files or launch",
    "K33-K35": "graphs, parallel topology, regressions: in no file, and in no launch option here",
    "K36-K38": "regime, metric and equality: of the reader, not of the drafter",
    "epsilon 1e-6 for 1e-5": "the squares that it is added to are above 1e-2",
}


def together(one: Kind, other: Kind) -> bool:
    """Whether both can lie in one drafter, each to be noticed.

    Not two in the same part of the arithmetic, nor one in a part that the other silences: its
    numbers would not be used. Where numbers are gone for good (`destroys`), a replay has nothing
    sound to compare with, so the other must be one that files or launch show; and nothing lies
    beside a fault with which the engine does not start.
    """
    return (
        one.part is not other.part
        and not _hides(one, other)
        and not _hides(other, one)
        and not one.refuses
        and not other.refuses
    )


def _hides(one: Kind, other: Kind) -> bool:
    silent = Part.EVERYTHING in one.silences or other.part in one.silences
    return silent or (one.destroys and other.sign is Sign.REPLAY)
