"""The weights of a drafter in another float type."""

from __future__ import annotations

from dataclasses import replace

from eyas.checkpoint.cast import is_exact, widens
from eyas.checkpoint.header import TORCH_NAMES
from eyas.checkpoint.rows import Cast, blocks
from eyas.convert.material import Material, Part, is_weight
from eyas.errors import UsageError

SAFETENSORS_NAMES = {torch: name for name, torch in TORCH_NAMES.items()}


def with_one_dtype(material: Material) -> Material:
    """`material` with its vectors in the type of its matrices, where they lose nothing by it.

    GGUF stores vectors as float32 whatever they were. Where matrices differ in type, or where a
    number of a vector would be rounded, all stays as it is.
    """
    weights = {role: part for role, part in material.parts.items() if is_weight(role, part)}
    kinds = {part.rows.dtype for part in weights.values() if len(part.rows.shape) > 1}
    vectors = {
        role: part
        for role, part in weights.items()
        if len(part.rows.shape) == 1 and {part.rows.dtype} != kinds
    }
    if len(kinds) != 1 or not vectors:
        return material
    (wanted,) = kinds
    for part in vectors.values():
        if not all(is_exact(raw, part.rows.dtype, wanted) for raw in blocks(part.rows)):
            return material
    return material.changed(
        f"{len(vectors)} vectors are stored as {wanted}, as the matrices are: none is rounded",
        parts={role: replace(p, rows=Cast(p.rows, wanted)) for role, p in vectors.items()},
    )


def with_dtype(material: Material, name: str) -> Material:
    """`material` with every weight in torch's type `name`; says whether numbers are rounded.

    Raises UsageError for a type that no drafter is stored in.
    """
    wanted = SAFETENSORS_NAMES.get(name)
    if wanted is None:
        raise UsageError(f"{name!r} is no type", hint=f"known: {', '.join(SAFETENSORS_NAMES)}")
    before = {
        role: part.rows.dtype
        for role, part in material.parts.items()
        if is_weight(role, part) and part.rows.dtype != wanted
    }
    if not before:
        return material
    parts: dict[str, Part | None] = {
        role: replace(material.parts[role], rows=Cast(material.parts[role].rows, wanted))
        for role in before
    }
    exact = all(widens(dtype, wanted) for dtype in before.values())
    how = "widened, exactly" if exact else "rounded to the nearest"
    kinds = ", ".join(sorted(set(before.values())))
    return material.changed(f"{len(before)} weights from {kinds} to {wanted}: {how}", parts=parts)
