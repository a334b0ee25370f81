"""The drafter's embedding and head: its own, or the target's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from eyas.checkpoint.rows import Gathered, Rows, StoredRows
from eyas.checkpoint.target_weights import embedding_of, head_of
from eyas.checks.unscaled import FLOATS
from eyas.convert.material import Material, Part
from eyas.convert.same import same_numbers
from eyas.errors import CheckpointError, ConversionError, TargetNeededError
from eyas.spec import DFlashSpec, Eagle3Spec, Fact, Ownership, VocabMap

if TYPE_CHECKING:
    from eyas.checkpoint import TargetFacts

EMBEDDING, HEAD = "embed_tokens.weight", "lm_head.weight"
_HINT = "name the directory of the target, with its weights, after --target"


def with_own_embedding(material: Material, target: TargetFacts | None) -> Material:
    """`material` with the target's embedding as its own; as it is where it has one.

    Raises ConversionError where the target's weights are not at hand, or of another width.
    """
    spec = material.facts
    if spec.embedding.value is Ownership.OWN:
        return material
    part = _of_target(target, EMBEDDING, spec.vocab_size.value, spec)
    return material.changed(
        "the target's embedding is added",
        facts={"embedding": _owned(spec.embedding)},
        parts={EMBEDDING: part},
    )


def with_own_head(material: Material, target: TargetFacts | None) -> Material:
    """`material` with a head of its own: its embedding's rows where they are tied, or the target's.

    Raises ConversionError where the target's weights are not at hand, or of another width.
    """
    spec = material.facts
    if HEAD in material.parts:
        return material
    if spec.head.value is Ownership.TIED:
        embedding = material.parts[EMBEDDING]
        count = spec.draft_vocab_size.value
        part = Part(rows=_cut(embedding.rows, count), origin=embedding.origin)
        what = "the embedding, which was tied, is stored as the head too"
    elif spec.head.value is Ownership.TARGET:
        part = _of_target(target, HEAD, spec.draft_vocab_size.value, spec)
        what = "the target's head is added"
    else:
        raise ConversionError(
            "the drafter's own head is not in its files",
            hint="export it again with all its tensors",
        )
    return material.changed(what, facts={"head": _owned(spec.head)}, parts={HEAD: part})


def without_own_embedding(material: Material, target: TargetFacts | None) -> Material:
    """`material` with its embedding left to the target, whose numbers it has.

    Raises ConversionError where the two differ, or where they cannot be compared.
    """
    spec = material.facts
    if spec.embedding.value is not Ownership.OWN:
        return material
    if spec.head.value is Ownership.TIED:
        raise ConversionError("the head is tied to the embedding, which cannot be left out")
    _require_same(material.parts[EMBEDDING], _of_target(target, EMBEDDING, None, spec))
    return material.changed(
        "the embedding is left to the target, whose numbers it has",
        facts={"embedding": replace(spec.embedding, value=Ownership.TARGET)},
        parts={EMBEDDING: None},
    )


def without_own_head(material: Material, target: TargetFacts | None) -> Material:
    """`material` with its head left to the target, whose numbers it has.

    Raises ConversionError where the two differ, or where the vocabulary is a part of the target's.
    """
    spec = material.facts
    if spec.head.value is not Ownership.OWN:
        return material
    if spec.vocab_map.value is not VocabMap.IDENTITY:
        raise ConversionError("the head has the rows of a reduced vocabulary, and the target's all")
    _require_same(material.parts[HEAD], _of_target(target, HEAD, None, spec))
    return material.changed(
        "the head is left to the target, whose numbers it has",
        facts={"head": replace(spec.head, value=Ownership.TARGET)},
        parts={HEAD: None},
    )


def has_targets_embedding(material: Material, target: TargetFacts | None) -> bool | None:
    """Whether the drafter's own embedding has the target's numbers; None where nobody can tell."""
    own = material.parts[EMBEDDING]
    try:
        theirs = _of_target(target, EMBEDDING, own.rows.shape[0], material.facts)
    except ConversionError:
        return None
    return same_numbers(own.rows, theirs.rows)


def missing_weights(material: Material, target: TargetFacts | None) -> TargetNeededError | None:
    """What is said of the target's embedding or head where it is not at hand; None where both are.

    Nothing but headers is read.
    """
    for role in (EMBEDDING, HEAD):
        try:
            _of_target(target, role, None, material.facts)
        except TargetNeededError as error:
            return error
        except ConversionError:
            continue
    return None


def _of_target(
    target: TargetFacts | None, role: str, count: int | None, spec: Eagle3Spec | DFlashSpec
) -> Part:
    """The target's embedding or head, cut to `count` rows where it has more."""
    what = "embedding" if role == EMBEDDING else "head"
    if target is None:
        raise TargetNeededError(f"the {what} is the target's, which is not named", hint=_HINT)
    try:
        files, header = embedding_of(target) if role == EMBEDDING else head_of(target)
    except CheckpointError as error:
        raise TargetNeededError(
            f"the {what} of {target.location} is not at hand: {error.message}", hint=_HINT
        ) from None
    if header.dtype not in FLOATS:
        raise ConversionError(f"the {what} of {target.location} is stored as {header.dtype}")
    if header.shape[1] != spec.hidden_size.value:
        raise ConversionError(
            f"the {what} of {target.location} is {header.shape[1]} wide, and the drafter"
            f" {spec.hidden_size.value}"
        )
    if count is not None and header.shape[0] < count:
        raise ConversionError(
            f"the {what} of {target.location} has {header.shape[0]} rows, and the drafter's {count}"
        )
    rows = StoredRows(files, header.name)
    return Part(
        rows=rows if count is None else _cut(rows, count),
        origin=f"{target.location} :: {header.name}",
    )


def _cut(rows: Rows, count: int) -> Rows:
    return rows if rows.shape[0] == count else Gathered(rows, range(count))


def _owned(fact: Fact[Ownership]) -> Fact[Ownership]:
    return replace(fact, value=Ownership.OWN)


def _require_same(own: Part, target: Part) -> None:
    count = own.rows.shape[0]
    if target.rows.shape[0] < count or not same_numbers(own.rows, _cut(target.rows, count)):
        raise ConversionError(
            f"{own.origin} is not {target.origin}, and would be lost",
            hint="keep the drafter's own",
        )
